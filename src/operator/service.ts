// svc3 as a service of its host: `install`, `status`, `upgrade` and `uninstall`, for the agent and the server.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Command, type Context, defineCommand, type Options, printed, type Values } from '../cli/command.ts'
import { Failure, UsageError } from '../cli/line/usage.ts'
import type { OutputColumn } from '../cli/output/output.ts'
import { checkoutFolder } from '../control-plane/checkout.ts'
import { isAccountName } from '../host/accounts.ts'
import {
  type Installation,
  type InstallStep,
  installedAs,
  installSteps,
  uninstallSteps,
  upgrade,
} from '../host/install.ts'
import { NotBuilt } from '../host/program.ts'
import { defaultUsers, type ServiceKind, serviceNames } from '../host/service.ts'
import { runProgram, type Supervisor, supervisors } from '../host/supervisors.ts'
import { quoted } from '../rules/shell-word.ts'
import { type AgentValues, command as agentCommand, agentOptions, joinTokenIn, joinTokenOfStdin } from './agent.ts'
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

const placed = (description: string) =>
  ({ root: { type: 'string', value: 'DIR', description } }) as const satisfies Options

const tried = {
  'dry-run': { type: 'boolean', description: 'Show what would be done, and change nothing' },
} as const satisfies Options

const keeps: Readonly<Record<ServiceKind, string>> = {
  agent: 'VMs keep running.',
  server: 'Nodes and VMs keep running without it.',
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
      'Installs the agent as a service of systemd or launchd that starts at boot and restarts on failure. VMs keep running\nwhen it stops. Only the user of the service can read the join token, which is deleted when the node has joined.',
    examples: [
      {
        line: 'svc3 agent install --api-url https://svc3.example.com --join-token-stdin < token.txt',
        does: 'Make this host a node',
      },
      { line: 'svc3 agent install --api-url https://svc3.example.com --dry-run', does: 'Show what would be done' },
    ],
    // Sound, because the options of the service are those of the command, and some more.
    check: (context, { options }) => agentOptions(context, options as unknown as AgentValues),
  },
  server: {
    command: serverCommand,
    without: ['data'],
    description: 'Installs the server as a service of systemd or launchd that starts at boot and restarts on failure.',
    examples: [
      { line: 'svc3 server install --url https://svc3.example.com:8443', does: 'Serve HTTPS on port 8443' },
      { line: 'svc3 server install --dry-run', does: 'Show what would be done' },
    ],
    check: async ({ host }, { options }) =>
      serverOptions(host, options as unknown as Parameters<typeof serverOptions>[1]),
  },
}

const installCommand = (kind: ServiceKind): Command =>
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
        description: 'User of the service (created if missing)',
      },
      ...placed('Write the files below this folder and start nothing'),
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
    if (options.join !== undefined || !text.includes(' --join;')) context.note(text)
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
    throw new UsageError('Use only one of --join, --join-token-file and --join-token-stdin', 'Remove the others')
  if (fromStdin) return joinTokenOfStdin(context)
  if (typeof file !== 'string') return typeof join === 'string' ? join.trim() : undefined
  return joinTokenIn(path.resolve(context.host.workingDir, file))
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

const upgradeCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: `Updates the service to this version of svc3 and restarts it. ${keeps[kind]}\nIf the new version does not start, the old one is restored.`,
    ownSignals: true,
    arguments: {},
    options: { ...placed('Write the files below this folder and restart nothing'), ...tried },
    examples: [{ line: `svc3 ${kind} upgrade`, does: 'Run this after installing a new version of svc3' }],
    run: (context, { options }) =>
      carryOut(context, {
        action: 'upgrade',
        kind,
        root: rootOf(context, options.root),
        dryRun: options['dry-run'],
      }),
  })

const uninstallCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: `Stops and removes the service. Keeps its data. ${keeps[kind]}`,
    ownSignals: true,
    arguments: {},
    options: { ...placed('Remove the files below this folder and stop nothing'), ...tried },
    examples: [{ line: `svc3 ${kind} uninstall`, does: 'Remove the service, keep the data' }],
    run: (context, { options }) =>
      carryOut(context, {
        action: 'uninstall',
        kind,
        root: rootOf(context, options.root),
        dryRun: options['dry-run'],
      }),
  })

const columns: readonly OutputColumn<ServiceStatus>[] = [
  { header: 'NAME', keep: 'always', cell: ({ name }) => name },
  { header: 'STATE', keep: 'always', cell: ({ state }) => state },
  { header: 'VERSION', cell: ({ version }) => version },
  { header: 'PID', cell: ({ pid }) => pid },
  { header: 'USER', wide: true, cell: ({ user }) => user },
  { header: 'DATA', wide: true, cell: ({ dataDir }) => dataDir },
  { header: 'TEXT', wide: true, cell: ({ text }) => text },
]

const statusCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: 'Exit code 1 if the service is not running.',
    arguments: {},
    options: { ...placed('Look below this folder instead of at this host'), ...printed },
    examples: [{ line: `svc3 ${kind} status -o wide`, does: 'Include the user, the data folder and the status text' }],
    run: async (context, { options }) =>
      showStatus(context, await serviceStatus({ kind, root: rootOf(context, options.root) })),
  })

/** Exit code 1 where it does not run. */
export async function showStatus(context: Context, status: ServiceStatus): Promise<number> {
  await context.print([status], columns, '')
  if (status.state !== 'not installed') context.note(`Logs: ${status.log}`)
  return status.state === 'running' ? 0 : 1
}

/** Carries it out, or reports why it cannot be done. */
async function carryOut({ host }: Context, request: ServiceRequest): Promise<number> {
  const { kind } = request
  try {
    await perform(request, host.typedAs, (line) => host.stdout.write(`${line}\n`))
    return 0
  } catch (error) {
    if (error instanceof Failure) throw error
    if (error instanceof NotBuilt) throw new Failure(error.message, 'Run npm run build there first')
    throw new Failure(
      error instanceof Error ? error.message : String(error),
      `Check svc3 ${kind} status, then run the same command again`,
    )
  }
}

type Say = (line: string) => void

async function perform(request: ServiceRequest, program: string, say: Say): Promise<void> {
  const { kind, root, dryRun, action } = request
  const target = await targetOf(request, say)
  const name = serviceNames[kind]
  if (root === undefined) await requireHost(target.supervisor, request)
  if (action === 'upgrade') {
    if (dryRun) return say(`${name} would be updated to this version and restarted. VMs keep running`)
    const { from, to } = await upgrade(target)
    return say(
      `${name}: ${from === to ? `reinstalled ${to}` : `upgraded from ${from} to ${to}`}${after(request, program)}`,
    )
  }
  const { dataDir } = (await installedAs(target)) ?? {}
  if (action === 'uninstall' && dataDir === undefined)
    throw new Failure(`${name} is not installed here`, 'Nothing to remove')
  const steps = action === 'install' ? await toInstall(target, request) : uninstallSteps(target)
  for (const step of steps) {
    if (dryRun) say(step.says)
    else await step.run()
  }
  if (dryRun) return say('Nothing was changed.')
  if (action === 'install')
    return say(`${name} is installed${root === undefined ? ' and running' : ` in ${root}`}.${after(request, program)}`)
  say(`${name} is removed. Its data remains in ${dataDir}, and VMs keep running.`)
}

const after = ({ kind, root }: ServiceRequest, program: string): string =>
  root === undefined ? `\nCheck it with ${program} ${kind} status` : ''

export type Install = Extract<ServiceRequest, { action: 'install' }>

async function toInstall(target: Installation, request: Install): Promise<readonly InstallStep[]> {
  const { kind, user = usualUser(kind), dataDir, writes, words, joinToken } = request
  if (!isAccountName(user)) throw new Failure(`Invalid user name "${user}"`, 'Choose another with --user')
  const secrets = joinToken === undefined ? [] : [{ name: joinTokenFile, text: `${joinToken}\n` }]
  return installSteps(target, { user, dataDir, writes, words, secrets })
}

/** On a Mac VMs belong to a person's account: tart keeps them in its home. */
const usualUser = (kind: ServiceKind): string =>
  process.platform === 'darwin' ? (process.env.SUDO_USER ?? 'root') : defaultUsers[kind]

async function targetOf({ kind, root }: ServicePlace, say: Say): Promise<Installation> {
  const supervisor = supervisors[process.platform]
  if (!supervisor)
    throw new Failure(`Services are not supported on ${process.platform}`, 'Run svc3 under a supervisor of your own')
  const node = { node: await stableNode(), ownNode: process.execPath }
  const own = { packageDir: checkoutFolder(), ...node, run: runProgram, say }
  return { kind, supervisor, root, isLive: root === undefined, ...own }
}

async function requireHost({ name }: Supervisor, request: ServiceRequest): Promise<void> {
  const isSystemd = await fs.access('/run/systemd/system').then(
    () => true,
    () => false,
  )
  if (name === 'systemd' && !isSystemd) throw noSystemd(request)
  if (!request.dryRun && process.getuid?.() !== 0)
    throw new Failure('Only root can change the services of this host', 'Use sudo')
}

/** With the line to run instead. A join token is not on it, nor the file that was not written. */
export function noSystemd(request: ServiceRequest): Failure {
  const message = 'This host does not run systemd'
  if (request.action !== 'install') return new Failure(message, 'Use --root DIR for files installed below a folder')
  const { words } = request
  const token = words.indexOf('--join-token-file')
  const line = ['svc3', ...(token < 0 ? words : words.toSpliced(token, 2)).map(quoted)].join(' ')
  const joined = token < 0 ? '' : ', with --join-token-file FILE at its first start'
  return new Failure(message, `Run this under a supervisor of your own${joined}: ${line}`)
}

/** Where hosts install programs for everybody. */
const isShared = (file: string): boolean => /^\/(usr|opt|bin|nix|snap)\//.test(file) && !file.includes('/.node/')

/**
 * Node as others find it: where this process runs from may be the folder of one version, gone with the next update
 * (Homebrew's Cellar is such a place). Undefined where it is in a checkout or in somebody's home, which may go.
 */
async function stableNode(): Promise<string | undefined> {
  const own = process.execPath
  // sudo may have taken Homebrew's folders out of the path.
  const usual = ['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin']
  const searched = (process.env.PATH ?? '').split(':').filter((each) => path.isAbsolute(each))
  for (const folder of [...searched, ...usual]) {
    const file = path.join(folder, 'node')
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === own && isShared(file) && isShared(own)) return file
  }
  return isShared(own) ? own : undefined
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

export const serviceCommands = (kind: ServiceKind) => ({
  install: installCommand(kind),
  status: statusCommand(kind),
  upgrade: upgradeCommand(kind),
  uninstall: uninstallCommand(kind),
})
