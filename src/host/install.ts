// Installs svc3 as a service of its host, upgrades it in place, and removes it. Installing and removing are lists of steps,
// which `--dry-run` prints. VMs keep running in each case.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import { type Account, accountGroups, createAccount, findAccount } from './accounts.ts'
import { currentProgram, type Installed, installProgram, ownNode, pointTo, versionOf } from './program.ts'
import { programDir, type ServiceDefinition, type ServiceKind, serviceNames } from './service.ts'
import type { RunProgram, Supervisor } from './supervisors.ts'

export interface Installation {
  readonly kind: ServiceKind
  readonly supervisor: Supervisor
  /** The folder with package.json, bin and dist of the program to install. */
  readonly packageDir: string
  /** A path of Node that survives updates. Undefined: `ownNode` is copied with the program. */
  readonly node: string | undefined
  readonly ownNode: string
  /** Files are written below this folder. Default: the root of the host. */
  readonly root: string | undefined
  /** Whether services are started and stopped and users created, rather than only files written. */
  readonly isLive: boolean
  readonly run: RunProgram
  say(line: string): void
}

export interface InstallRequest {
  readonly user: string
  readonly dataDir: string
  readonly writes: readonly string[]
  /** The arguments of the program. They must have no secrets. */
  readonly words: readonly string[]
  /** Files in the data folder that only the service's user can read. */
  readonly secrets: readonly { readonly name: string; readonly text: string }[]
}

/** Recorded for upgrades. */
interface InstallRecord extends Pick<InstallRequest, 'user' | 'dataDir' | 'writes' | 'words'> {
  readonly formatVersion: 1
  readonly groups: readonly string[]
}

export interface InstallStep {
  readonly says: string
  run(): Promise<void>
}

const recordFile = 'install.json'
const pathOn = ({ root }: Pick<Installation, 'root'>, file: string): string =>
  root === undefined ? file : path.join(root, file)

/** The flags that bin/svc3 passes to Node.js, because services run without that script. */
const flags: Readonly<Record<ServiceKind, readonly string[]>> = { agent: [], server: ['--max-semi-space-size=16'] }

const definitionOf = (
  { kind, node }: Pick<Installation, 'kind' | 'node'>,
  { user, groups, dataDir, writes, words }: Omit<InstallRecord, 'formatVersion'>,
): ServiceDefinition => ({
  kind,
  user,
  groups,
  dataDir,
  writes,
  command: [
    node ?? path.posix.join(programDir(kind), ownNode),
    ...flags[kind],
    path.posix.join(programDir(kind), 'current/dist/svc3.cjs'),
    ...words,
  ],
})

export async function installSteps(target: Installation, request: InstallRequest): Promise<readonly InstallStep[]> {
  const { supervisor, isLive, run, kind } = target
  const { secrets, ...settings } = request
  const { user, dataDir } = settings
  const folder = pathOn(target, programDir(kind))
  const record: InstallRecord = { formatVersion: 1, ...settings, groups: await accountGroups(kind, run) }
  let account: Account | undefined
  const own = async (file: string): Promise<void> => {
    if (account) await fs.chown(file, account.uid, account.gid)
  }
  return [
    ...(isLive
      ? [
          {
            says: `User ${user}: created if missing`,
            run: async () => {
              account = (await findAccount(user, run)) ?? (await createAccount(user, dataDir, run))
              await requireOwn(pathOn(target, dataDir), account, user, kind)
            },
          },
        ]
      : []),
    ...[dataDir, ...supervisor.folders(kind)].map((each) => ({
      says: `Folder ${each}: created if missing, accessible only to ${user}`,
      run: async () => {
        await fs.mkdir(pathOn(target, each), { recursive: true })
        await fs.chmod(pathOn(target, each), 0o700)
        await own(pathOn(target, each))
      },
    })),
    ...secrets.map(({ name, text }) => ({
      says: `File ${path.join(dataDir, name)}: readable only by ${user}`,
      run: async () => {
        const file = pathOn(target, path.join(dataDir, name))
        await writeFileAtomically(file, text, { mode: 0o600 })
        // lchown, because that user could have replaced the file by a link to another.
        if (account) await fs.lchown(file, account.uid, account.gid)
      },
    })),
    {
      says: `${programDir(kind)}: a copy of this program${target.node === undefined ? ' and of Node' : ''}`,
      run: async () => void (await copyProgram(target)),
    },
    {
      says: `${programDir(kind)}/${recordFile}: settings for upgrades`,
      run: () =>
        writeFileAtomically(path.join(folder, recordFile), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o644 }),
    },
    ...fileSteps(target, definitionOf(target, record)),
    ...(isLive ? [startStep(target)] : []),
  ].map((step) => withName(step, supervisor))
}

/** A file in every data folder that an agent or a server has used. */
const marks: Readonly<Record<ServiceKind, string>> = { agent: 'node.json', server: 'master.key' }

/** Refuses a data folder of another user: the service could not read it, nor stop VMs that run as that user. */
async function requireOwn(dataDir: string, { uid }: Account, user: string, kind: ServiceKind): Promise<void> {
  const mark = await fs.lstat(path.join(dataDir, marks[kind])).catch(() => undefined)
  if (!mark || mark.uid === uid) return
  throw new Error(
    `${dataDir} belongs to another user (uid ${mark.uid}). Install with --user and the name of that user, or stop everything that runs there and run chown -R ${user}: ${dataDir}`,
  )
}

/** Replaces the program and the definition and restarts the service. If it does not start, the old ones are restored. */
export async function upgrade(target: Installation): Promise<{ readonly from: string; readonly to: string }> {
  const { kind, supervisor, run, isLive, say } = target
  const folder = pathOn(target, programDir(kind))
  const record = await readRecord(target)
  const definition = definitionOf(target, record)
  const files = supervisor.files(definition)
  const old = await Promise.all(files.map((file) => readFileIfPresent(pathOn(target, file.path))))
  const { before, now, version }: Installed = await copyProgram(target)
  for (const step of fileSteps(target, definition)) await step.run()
  const from = before === undefined ? 'none' : versionOf(before)
  if (!isLive) return { from, to: version }
  try {
    await supervisor.start(kind, run)
  } catch (error) {
    if (before === undefined || before === now) throw error
    say(`${serviceNames[kind]} ${version} did not start; rolling back to ${from}`)
    const said = await supervisor.lastLog(kind, run).catch(() => '')
    await pointTo(folder, before)
    for (const [index, { path: file, mode }] of files.entries()) {
      const text = old[index]
      if (text !== undefined) await writeFileAtomically(pathOn(target, file), text, { mode })
    }
    await supervisor.start(kind, run)
    throw new Error(
      `${serviceNames[kind]} ${version} did not start; ${from} is running again. Last log lines of ${version}:\n${said}`,
    )
  }
  return { from, to: version }
}

export function uninstallSteps(target: Installation): readonly InstallStep[] {
  const { kind, supervisor, run, isLive } = target
  const files = supervisor.files(definitionOf(target, { user: '', groups: [], dataDir: '/', writes: [], words: [] }))
  return [
    ...(isLive
      ? [{ says: `${supervisor.name}: stop ${serviceNames[kind]}`, run: () => supervisor.stop(kind, run) }]
      : []),
    ...[...files.map((file) => file.path), programDir(kind)].map((file) => ({
      says: `${file}: removed`,
      run: () => fs.rm(pathOn(target, file), { recursive: true, force: true }),
    })),
    ...(isLive ? [{ says: `${supervisor.name}: reload`, run: () => supervisor.removed(run) }] : []),
  ]
}

/** Undefined if the service is not installed. */
export async function installedAs(
  target: Pick<Installation, 'kind' | 'root'>,
): Promise<{ readonly version: string; readonly dataDir: string; readonly user: string } | undefined> {
  const folder = pathOn(target, programDir(target.kind))
  const name = await currentProgram(folder)
  const text = await readFileIfPresent(path.join(folder, recordFile))
  if (name === undefined || text === undefined) return undefined
  const { dataDir, user } = JSON.parse(text) as InstallRecord
  return { version: versionOf(name), dataDir, user }
}

async function readRecord(target: Installation): Promise<InstallRecord> {
  const text = await readFileIfPresent(path.join(pathOn(target, programDir(target.kind)), recordFile))
  if (text !== undefined) return JSON.parse(text) as InstallRecord
  throw new Error(`${serviceNames[target.kind]} is not installed here. Run svc3 ${target.kind} install first`)
}

const copyProgram = (target: Installation): Promise<Installed> => {
  const node = target.node === undefined ? target.ownNode : undefined
  return installProgram({ packageDir: target.packageDir, folder: pathOn(target, programDir(target.kind)), node })
}

const fileSteps = (target: Installation, definition: ServiceDefinition): readonly InstallStep[] =>
  target.supervisor.files(definition).map(({ path: file, text, mode }) => ({
    says: `${file}:\n${text.replace(/^/gm, '    ').trimEnd()}`,
    run: async () => {
      await fs.mkdir(path.dirname(pathOn(target, file)), { recursive: true })
      await writeFileAtomically(pathOn(target, file), text, { mode })
    },
  }))

const startStep = ({ kind, supervisor, run }: Installation): InstallStep => ({
  says: `${supervisor.name}: start ${serviceNames[kind]} now and at every boot`,
  run: async () => {
    try {
      await supervisor.start(kind, run)
    } catch (error) {
      const said = await supervisor.lastLog(kind, run).catch(() => '')
      throw new Error(`${serviceNames[kind]} did not start. Last log lines:\n${said || (error as Error).message}`)
    }
  },
})

/** Makes errors name the step in which they occurred. */
function withName(step: InstallStep, { name }: Supervisor): InstallStep {
  return {
    says: step.says,
    run: async () => {
      try {
        await step.run()
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === undefined) throw error
        throw new Error(`${step.says.split('\n')[0]} (${name}): failed (${code})`, { cause: error })
      }
    },
  }
}
