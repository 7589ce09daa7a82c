// Installs svc3 as a service of its host, upgrades it in place, and removes it. Each is a list of steps, so that
// `--dry-run` can tell them without doing any. Whatever happens to the service, VMs run on.
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
  /** The folder with package.json, bin and dist of the program that is to be installed. */
  readonly packageDir: string
  /** Node, by a path that stays; undefined: `ownNode` is copied with the program. */
  readonly node: string | undefined
  readonly ownNode: string
  /** Files go below that folder; undefined: they go where the host looks for them. */
  readonly root: string | undefined
  /** The service is started and stopped, users are made. Otherwise there are only files. */
  readonly isLive: boolean
  readonly run: RunProgram
  say(line: string): void
}

export interface InstallRequest {
  readonly user: string
  readonly dataDir: string
  /** Other folders that the service writes to. */
  readonly writes: readonly string[]
  /** What follows the program's name. Nothing secret. */
  readonly words: readonly string[]
  /** Files of the service's user in the data folder, closed to others: secrets come this way. */
  readonly secrets: readonly { readonly name: string; readonly text: string }[]
}

/** What a later upgrade needs to know. */
interface Note extends Pick<InstallRequest, 'user' | 'dataDir' | 'writes' | 'words'> {
  readonly formatVersion: 1
  readonly groups: readonly string[]
}

export interface InstallStep {
  readonly says: string
  run(): Promise<void>
}

const noteFile = 'install.json'
const place = ({ root }: Pick<Installation, 'root'>, file: string): string =>
  root === undefined ? file : path.join(root, file)

/** As bin/svc3 has them, which services do not go through. */
const flags: Readonly<Record<ServiceKind, readonly string[]>> = { agent: [], server: ['--max-semi-space-size=16'] }

const definitionOf = (
  { kind, node }: Pick<Installation, 'kind' | 'node'>,
  { user, groups, dataDir, writes, words }: Omit<Note, 'formatVersion'>,
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
  const { user, dataDir, secrets } = request
  const groups = await accountGroups(kind, run)
  const definition = definitionOf(target, { ...request, groups })
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
              await requireOwn(place(target, dataDir), account, user, kind)
            },
          },
        ]
      : []),
    ...[dataDir, ...supervisor.folders(kind)].map((each) => ({
      says: `Folder ${each}: created if missing, accessible only to ${user}`,
      run: async () => {
        await fs.mkdir(place(target, each), { recursive: true })
        await fs.chmod(place(target, each), 0o700)
        await own(place(target, each))
      },
    })),
    ...secrets.map(({ name, text }) => ({
      says: `File ${path.join(dataDir, name)}: readable only by ${user}`,
      run: async () => {
        const file = place(target, path.join(dataDir, name))
        await writeFileAtomically(file, text, { mode: 0o600 })
        // Not through a link: the folder is that user's.
        if (account) await fs.lchown(file, account.uid, account.gid)
      },
    })),
    programStep(target),
    noteStep(target, { formatVersion: 1, ...pick(request), groups }),
    ...fileSteps(target, definition),
    ...(isLive ? [startStep(target)] : []),
  ].map((step) => withName(step, supervisor))
}

/** In every folder that an agent or a server has worked in. */
const marks: Readonly<Record<ServiceKind, string>> = { agent: 'node.json', server: 'master.key' }

/** Data that another user made could not be read, and VMs that another user runs could not be stopped. */
async function requireOwn(dataDir: string, { uid }: Account, user: string, kind: ServiceKind): Promise<void> {
  const mark = await fs.lstat(path.join(dataDir, marks[kind])).catch(() => undefined)
  if (!mark || mark.uid === uid) return
  throw new Error(
    `${dataDir} belongs to another user (uid ${mark.uid}). Install with --user and the name of that user, or stop everything that runs there and run chown -R ${user}: ${dataDir}`,
  )
}

/** Changes the program and the definition, starts the service again, and goes back to the old ones if it does not come up. */
export async function upgrade(target: Installation): Promise<{ readonly from: string; readonly to: string }> {
  const { kind, supervisor, run, isLive, say } = target
  const folder = place(target, programDir(kind))
  const note = await readNote(target)
  const definition = definitionOf(target, note)
  const files = supervisor.files(definition)
  const old = await Promise.all(files.map((file) => readFileIfPresent(place(target, file.path))))
  const { before, now, version }: Installed = await copyProgram(target)
  for (const step of fileSteps(target, definition)) await step.run()
  const from = before === undefined ? 'none' : versionOf(before)
  if (!isLive) return { from, to: version }
  try {
    await supervisor.start(kind, run)
  } catch (error) {
    if (before === undefined || before === now) throw error
    say(`${serviceNames[kind]} ${version} did not start; rolling back to ${from}`)
    const said = await supervisor.lastWords(kind, run).catch(() => '')
    await pointTo(folder, before)
    for (const [index, { path: file, mode }] of files.entries()) {
      const text = old[index]
      if (text !== undefined) await writeFileAtomically(place(target, file), text, { mode })
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
      run: () => fs.rm(place(target, file), { recursive: true, force: true }),
    })),
    ...(isLive ? [{ says: `${supervisor.name}: reload`, run: () => supervisor.forgotten(run) }] : []),
  ]
}

/** What is installed: its version, and what the service works with. Undefined: nothing is. */
export async function installedAs(
  target: Pick<Installation, 'kind' | 'root'>,
): Promise<{ readonly version: string; readonly dataDir: string; readonly user: string } | undefined> {
  const folder = place(target, programDir(target.kind))
  const name = await currentProgram(folder)
  const text = await readFileIfPresent(path.join(folder, noteFile))
  if (name === undefined || text === undefined) return undefined
  const { dataDir, user } = JSON.parse(text) as Note
  return { version: versionOf(name), dataDir, user }
}

async function readNote(target: Installation): Promise<Note> {
  const text = await readFileIfPresent(path.join(place(target, programDir(target.kind)), noteFile))
  if (text !== undefined) return JSON.parse(text) as Note
  throw new Error(`${serviceNames[target.kind]} is not installed here. Run svc3 ${target.kind} install first`)
}

const pick = ({ user, dataDir, writes, words }: InstallRequest) => ({ user, dataDir, writes, words })

const copyProgram = (target: Installation): Promise<Installed> => {
  const seenAs = programDir(target.kind)
  const node = target.node === undefined ? target.ownNode : undefined
  return installProgram({ packageDir: target.packageDir, folder: place(target, seenAs), seenAs, node })
}

const programStep = (target: Installation): InstallStep => ({
  says: `${programDir(target.kind)}: a copy of this program${target.node === undefined ? ' and of Node' : ''}`,
  run: async () => {
    await copyProgram(target)
  },
})

const noteStep = (target: Installation, note: Note): InstallStep => ({
  says: `${programDir(target.kind)}/${noteFile}: settings for upgrades`,
  run: () =>
    writeFileAtomically(
      path.join(place(target, programDir(target.kind)), noteFile),
      `${JSON.stringify(note, null, 2)}\n`,
      { mode: 0o644 },
    ),
})

const fileSteps = (target: Installation, definition: ServiceDefinition): readonly InstallStep[] =>
  target.supervisor.files(definition).map(({ path: file, text, mode }) => ({
    says: `${file}:\n${text.replace(/^/gm, '    ').trimEnd()}`,
    run: async () => {
      await fs.mkdir(path.dirname(place(target, file)), { recursive: true })
      await writeFileAtomically(place(target, file), text, { mode })
    },
  }))

const startStep = ({ kind, supervisor, run }: Installation): InstallStep => ({
  says: `${supervisor.name}: start ${serviceNames[kind]} now and at every boot`,
  run: async () => {
    try {
      await supervisor.start(kind, run)
    } catch (error) {
      const said = await supervisor.lastWords(kind, run).catch(() => '')
      throw new Error(`${serviceNames[kind]} did not start. Last log lines:\n${said || (error as Error).message}`)
    }
  },
})

/** An error says in which step it happened. */
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
