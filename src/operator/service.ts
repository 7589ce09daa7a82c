// svc3 as a service of its host: `install`, `status`, `upgrade` and `uninstall`, for the agent and the server.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Command, type Context, defineCommand, type Options, printed, type Values } from '../cli/command.ts'
import { readPassword } from '../cli/connect/password.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import type { Column } from '../cli/output/output.ts'
import { checkoutFolder } from '../control-plane/checkout.ts'
import { isUserName } from '../host/accounts.ts'
import { type Installation, installedAs, installSteps, type Step, uninstallSteps, upgrade } from '../host/install.ts'
import { NotBuilt } from '../host/program.ts'
import { defaultUsers, type ServiceKind, serviceNames } from '../host/service.ts'
import { runProgram, type Supervisor, supervisors } from '../host/supervisors.ts'
import { type AgentValues, command as agentCommand, agentOptions } from './agent.ts'
import { command as serverCommand, serverOptions } from './server.ts'

/** In the data folder; the agent removes it when it has joined. */
const joinTokenFile = 'join-token'

/** Where a service of the host is worked on. */
interface ServicePlace {
  readonly kind: ServiceKind
  /** Files go below this folder, and nothing is started; undefined: this host itself. */
  readonly root: string | undefined
}

export type ServiceRequest = ServicePlace & { readonly dryRun: boolean } & (
    | { readonly action: 'upgrade' | 'uninstall' }
    | {
        readonly action: 'install'
        /** Undefined: one for services alone, or on macOS who called sudo. */
        readonly user: string | undefined
        readonly dataDir: string
        readonly writes: readonly string[]
        /** What the service is started with. Nothing secret: everybody can read it. */
        readonly words: readonly string[]
        /** Written to a file of the service's user. */
        readonly joinToken: string | undefined
      }
  )

export interface ServiceStatus {
  readonly name: string
  readonly state: 'running' | 'starting' | 'stopped' | 'failed' | 'not installed'
  readonly version?: string
  readonly pid?: number
  readonly user?: string
  readonly dataDir?: string
  /** As the service itself says it. */
  readonly text?: string
  /** The command that shows what it wrote. */
  readonly log: string
}

const placed = {
  root: {
    type: 'string',
    value: 'DIR',
    description: 'Make the files below this folder, and start nothing',
  },
} as const satisfies Options

const tried = {
  'dry-run': { type: 'boolean', description: 'Only show what would be done' },
} as const satisfies Options

const keeps: Readonly<Record<ServiceKind, string>> = {
  agent: 'VMs run on.',
  server: 'Nodes and VMs do not need it to go on.',
}

type Given = Values<Command['arguments'], Options>

interface Running {
  /** What runs in the foreground: its options are those of the service, and it judges them. */
  readonly command: Command
  /** Its options that are not the service's: secrets, and what is decided here. */
  readonly without: readonly string[]
  readonly examples: Command['examples']
  readonly description: string
  /** Refuses what the command would refuse. `imageDir` may be elsewhere than the data. */
  check(context: Context, values: Given): Promise<{ readonly dataDir: string; readonly imageDir?: string }>
}

const running: Readonly<Record<ServiceKind, Running>> = {
  agent: {
    command: agentCommand,
    without: ['data', 'join', 'join-token-file', 'join-token-stdin', 'remove-unknown'],
    description:
      'Makes the agent a service of this host, by systemd or launchd: started with it, and again when it fails. Its VMs run\non when it stops. The join token goes into a file of its user alone, and is removed when the node has joined.',
    examples: [
      {
        line: 'svc3 agent install --api-url https://svc3.example.com --join-token-stdin < token.txt',
        does: 'This host becomes a node',
      },
      { line: 'svc3 agent install --api-url https://svc3.example.com --dry-run', does: 'What would be done' },
    ],
    // Sound, because the options of the service are those of the command, and some more.
    check: (context, { options }) => agentOptions(context, options as unknown as AgentValues),
  },
  server: {
    command: serverCommand,
    without: ['data'],
    description:
      'Makes the control plane a service of this host, by systemd or launchd: started with it, and again when it fails.',
    examples: [
      { line: 'svc3 server install --url https://svc3.example.com:8443', does: 'HTTPS on port 8443, from now on' },
      { line: 'svc3 server install --dry-run', does: 'What would be done' },
    ],
    check: async ({ host }, { options }) =>
      serverOptions(host, options as unknown as Parameters<typeof serverOptions>[1]),
  },
}

export const installCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: running[kind].description,
    ownSignals: true,
    arguments: {},
    options: {
      ...running[kind].command.options,
      user: {
        type: 'string',
        value: 'NAME',
        defaultText: kind === 'agent' ? 'svc3-agent; on macOS yours' : 'svc3; on macOS yours',
        description: 'User that the service runs as; made if it is not there',
      },
      ...placed,
      ...tried,
    },
    examples: running[kind].examples,
    run: async (context, values) => carryOut(context, await installRequest(kind, context, values)),
  })

export async function installRequest(kind: ServiceKind, context: Context, values: Given): Promise<Install> {
  const { host } = context
  const { command, without, check } = running[kind]
  const options = values.options as Readonly<Record<string, unknown>>
  const joinToken = await joinText(context, options)
  // It is given to the command as --join, whichever way it came: only where that is so, a word about it is due.
  const note = (text: string): void => {
    if (options.join !== undefined || !text.startsWith('--join ')) context.note(text)
  }
  const { dataDir, imageDir = dataDir } = await check({ ...context, note }, withJoin(values, joinToken))
  const words = Object.entries(command.options).flatMap(([name, option]) =>
    without.includes(name) ? [] : wordsOf(name, option, options[name], host.workingDir),
  )
  return {
    action: 'install',
    kind,
    root: rootOf(context, options.root as string | undefined),
    dryRun: options['dry-run'] === true,
    user: options.user as string | undefined,
    dataDir,
    writes: path.relative(dataDir, imageDir).startsWith('..') ? [imageDir] : [],
    words: [
      ...[kind, '--data', dataDir, ...words],
      ...(joinToken === undefined ? [] : ['--join-token-file', path.join(dataDir, joinTokenFile)]),
    ],
    joinToken,
  }
}

/** As it was given, whatever is in it besides the token: the agent is to read the same. */
async function joinText(context: Context, options: Readonly<Record<string, unknown>>): Promise<string | undefined> {
  const { join, 'join-token-file': file, 'join-token-stdin': fromStdin } = options
  if ([join, file, fromStdin || undefined].filter((source) => source !== undefined).length > 1)
    throw new UsageError('--join, --join-token-file and --join-token-stdin exclude each other', 'give one of them')
  if (fromStdin) return (await readPassword(context, 'Join token: ')).trim()
  if (typeof file !== 'string') return typeof join === 'string' ? join.trim() : undefined
  const place = path.resolve(context.host.workingDir, file)
  const text = await fs.readFile(place, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      `the join token cannot be read from ${place} (${error.code})`,
      'svc3 node join-token makes one',
    )
  })
  return text.trim()
}

const withJoin = (values: Given, join: string | undefined): Given =>
  join === undefined
    ? values
    : { ...values, options: { ...values.options, join, 'join-token-file': undefined, 'join-token-stdin': false } }

/** An option as it was given, with paths that mean the same wherever the service runs. */
function wordsOf(name: string, option: Options[string], value: unknown, workingDir: string): readonly string[] {
  if (value === undefined || value === false || ('default' in option && option.default === value)) return []
  if (value === true) return [`--${name}`]
  const isPath = option.type === 'string' && (option.value === 'FILE' || option.value === 'DIR')
  const one = (each: unknown): string[] => [`--${name}`, isPath ? path.resolve(workingDir, String(each)) : String(each)]
  return Array.isArray(value) ? value.flatMap(one) : one(value)
}

const rootOf = ({ host }: Context, root: string | undefined): string | undefined =>
  root === undefined ? undefined : path.resolve(host.workingDir, root)

export const upgradeCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: `Lets the service run this version of the program, and starts it again. ${keeps[kind]}\nWhere the new version does not come up, the old one is started again.`,
    ownSignals: true,
    arguments: {},
    options: { ...placed, ...tried },
    examples: [{ line: `svc3 ${kind} upgrade`, does: 'After a new version of svc3 was installed' }],
    run: (context, { options }) =>
      carryOut(context, {
        action: 'upgrade',
        kind,
        root: rootOf(context, options.root),
        dryRun: options['dry-run'],
      }),
  })

export const uninstallCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: `Stops the service and removes it, not its data. ${keeps[kind]}`,
    ownSignals: true,
    arguments: {},
    options: { ...placed, ...tried },
    examples: [{ line: `svc3 ${kind} uninstall`, does: 'The host is as before, but for the data' }],
    run: (context, { options }) =>
      carryOut(context, {
        action: 'uninstall',
        kind,
        root: rootOf(context, options.root),
        dryRun: options['dry-run'],
      }),
  })

const columns: readonly Column<ServiceStatus>[] = [
  { header: 'NAME', keep: 'always', cell: ({ name }) => name },
  { header: 'STATE', keep: 'always', cell: ({ state }) => state },
  { header: 'VERSION', cell: ({ version }) => version },
  { header: 'PID', cell: ({ pid }) => pid },
  { header: 'USER', wide: true, cell: ({ user }) => user },
  { header: 'DATA', wide: true, cell: ({ dataDir }) => dataDir },
  { header: 'TEXT', wide: true, cell: ({ text }) => text },
]

export const statusCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: 'Exit code 1 where it does not run.',
    arguments: {},
    options: { ...placed, ...printed },
    examples: [{ line: `svc3 ${kind} status -o wide`, does: 'With its user, its data, and what it says' }],
    run: async (context, { options }) =>
      showStatus(context, await serviceStatus({ kind, root: rootOf(context, options.root) })),
  })

/** Exit code 1 where it does not run. */
export async function showStatus(context: Context, status: ServiceStatus): Promise<number> {
  await context.print([status], columns, '')
  if (status.state !== 'not installed') context.note(`what it wrote: ${status.log}`)
  return status.state === 'running' ? 0 : 1
}

/** Carries it out, or reports why it cannot be done. */
async function carryOut({ host }: Context, request: ServiceRequest): Promise<number> {
  const { kind } = request
  try {
    await perform(request, (line) => host.stdout.write(`${line}\n`))
    return 0
  } catch (error) {
    if (error instanceof Failure) throw error
    if (error instanceof NotBuilt) throw new Failure(error.message, 'run "npm run build" there first')
    throw new Failure(
      error instanceof Error ? error.message : String(error),
      `"svc3 ${kind} status" shows how it stands; the same command again goes on from there`,
    )
  }
}

type Say = (line: string) => void

async function perform(request: ServiceRequest, say: Say): Promise<void> {
  const { kind, root, dryRun, action } = request
  const target = await targetOf(request, say)
  const name = serviceNames[kind]
  if (root === undefined && !dryRun) await requireHost(target.supervisor)
  if (action === 'upgrade') {
    if (dryRun) return say(`${name} would run this program, and be started again; VMs run on`)
    const { from, to } = await upgrade(target)
    return say(`${name}: ${from === to ? `${to}, installed again` : `${from} is now ${to}`}${after(request)}`)
  }
  const { dataDir } = (await installedAs(target)) ?? {}
  if (action === 'uninstall' && dataDir === undefined)
    throw new Failure(`${name} is not installed here`, 'there is nothing to remove')
  const steps = action === 'install' ? await toInstall(target, request) : uninstallSteps(target)
  for (const step of steps) {
    if (dryRun) say(step.says)
    else await step.run()
  }
  if (dryRun) return say('Nothing was changed.')
  if (action === 'install')
    return say(`${name} is installed${root === undefined ? ' and runs' : ` in ${root}`}.${after(request)}`)
  say(`${name} is removed. Its data stay in ${dataDir}, and VMs that run, run on.`)
}

const after = ({ kind, root }: ServiceRequest): string =>
  root === undefined ? `\n"svc3 ${kind} status" shows how it stands.` : ''

export type Install = Extract<ServiceRequest, { action: 'install' }>

async function toInstall(target: Installation, request: Install): Promise<readonly Step[]> {
  const { kind, user = usualUser(kind), dataDir, writes, words, joinToken } = request
  if (!isUserName(user)) throw new Failure(`"${user}" is no name of a user`, 'name one with --user')
  const secrets = joinToken === undefined ? [] : [{ name: joinTokenFile, text: `${joinToken}\n` }]
  return installSteps(target, { user, dataDir, writes, words, secrets })
}

/** On a Mac VMs belong to a person's account: tart keeps them in its home. */
const usualUser = (kind: ServiceKind): string =>
  process.platform === 'darwin' ? (process.env.SUDO_USER ?? 'root') : defaultUsers[kind]

async function targetOf({ kind, root }: ServicePlace, say: Say): Promise<Installation> {
  const supervisor = supervisors[process.platform]
  if (!supervisor)
    throw new Failure(`svc3 can be no service on ${process.platform}`, 'run it under a supervisor of your own')
  const own = { packageDir: checkoutFolder(), node: await stableNode(), run: runProgram, say }
  return { kind, supervisor, root, isLive: root === undefined, ...own }
}

async function requireHost({ name }: Supervisor): Promise<void> {
  const isSystemd = await fs.access('/run/systemd/system').then(
    () => true,
    () => false,
  )
  if (name === 'systemd' && !isSystemd)
    throw new Failure(
      'systemd does not run on this host',
      'run "svc3 agent" or "svc3 server" under the supervisor that does, or use --root DIR to make the files',
    )
  if (process.getuid?.() !== 0) throw new Failure('only root may change the services of this host', 'use sudo')
}

/**
 * Node as others find it: where this process runs from may be the folder of one version, gone with the next update
 * (Homebrew's Cellar is such a place).
 */
async function stableNode(): Promise<string> {
  const own = process.execPath
  // sudo may have taken Homebrew's folders out of the path.
  const usual = ['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin']
  const searched = (process.env.PATH ?? '').split(':').filter((each) => path.isAbsolute(each))
  for (const folder of [...searched, ...usual]) {
    const file = path.join(folder, 'node')
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === own) return file
  }
  return own
}

async function serviceStatus(place: ServicePlace): Promise<ServiceStatus> {
  const target = await targetOf(place, () => undefined)
  const { kind, supervisor, root, run } = target
  const installed = await installedAs(target)
  const isHere = root === undefined && installed !== undefined
  const state = isHere ? await supervisor.state(kind, run).catch(() => undefined) : undefined
  return {
    name: serviceNames[kind],
    ...installed,
    ...(state ?? { state: installed ? 'stopped' : 'not installed' }),
    log: supervisor.logCommand(kind),
  }
}
