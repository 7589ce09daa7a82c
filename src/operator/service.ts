// svc3 as a service of its host: `install`, `status`, `upgrade` and `uninstall`, for the agent and the server.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type Command, type Context, defineCommand, type Options, printed, type Values } from '../cli/command.ts'
import { Failure } from '../cli/line/usage.ts'
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
import { runProgram, type ServiceState, type Supervisor, supervisors } from '../host/supervisors.ts'
import { reasonOf } from '../platform/reason.ts'
import { succeeds } from '../platform/succeeds.ts'
import { quoted } from '../rules/shell-word.ts'
import { command as agentCommand } from './agent.ts'
import { type AgentValues, agentOptions, joinTokenIn, joinTokenOfStdin, requireOneJoin } from './agent-options.ts'
import { type ServerValues, command as serverCommand, serverOptions } from './server.ts'

/** A file in the data folder. The agent deletes it when it has joined. */
const joinTokenFile = 'join-token'

interface ServiceTarget {
  readonly kind: ServiceKind
  /** Files are written below this folder and nothing is started. Undefined: this host itself. */
  readonly root: string | undefined
}

type ServiceRequest = ServiceTarget & { readonly dryRun: boolean } & (
    | { readonly action: 'upgrade' | 'uninstall' }
    | {
        readonly action: 'install'
        /** Default: a system user; on macOS the user that called sudo. */
        readonly user: string | undefined
        readonly dataDir: string
        readonly writes: readonly string[]
        /** The arguments of the service. They have no secrets, because all users can read them. */
        readonly words: readonly string[]
        /** Written to a file that only the service's user can read. */
        readonly joinToken: string | undefined
      }
  )

interface ServiceStatus extends ServiceState {
  readonly name: string
  readonly version?: string
  readonly user?: string
  readonly dataDir?: string
  /** The command that shows its log. */
  readonly log: string
}

/** `root` describes what the command does below another root folder. */
const changeOptions = (root: string) =>
  ({
    root: { type: 'string', value: 'DIR', description: root },
    'dry-run': { type: 'boolean', description: 'Show what would be done, and change nothing' },
  }) as const satisfies Options

const keeps: Readonly<Record<ServiceKind, string>> = {
  agent: 'VMs keep running.',
  server: 'Nodes and VMs keep running without it.',
}

type CommandValues = Values<Command['arguments'], Options>

interface ServiceCommand {
  /** The command that runs in the foreground. The service has its options. */
  readonly command: Command
  /** Options that the service does not get: secrets, and those that the installation decides. */
  readonly without: readonly string[]
  readonly description: string
  readonly examples: Command['examples']
  /** Refuses values that the command would refuse. `imageDir` may be outside of the data folder. */
  check(context: Context, values: CommandValues): Promise<{ readonly dataDir: string; readonly imageDir?: string }>
}

const foreground: Readonly<Record<ServiceKind, ServiceCommand>> = {
  agent: {
    command: agentCommand,
    without: ['data', 'join', 'join-token-file', 'join-token-stdin', 'remove-unknown', 'renew-key'],
    description:
      'Installs the agent as a service of systemd or launchd that starts at boot and restarts on failure. VMs keep running\nwhen it stops. Only the user of the service can read the join token, which is deleted when the node has joined.',
    examples: [
      {
        line: 'svc3 agent install --api-url https://svc3.example.com --join-token-stdin < token.txt',
        does: 'Make this host a node',
      },
      { line: 'svc3 agent install --api-url https://svc3.example.com --dry-run', does: 'Show what would be done' },
    ],
    // The cast is safe, because `install` has all options of the command.
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
    check: async ({ host }, { options }) => serverOptions(host, options as unknown as ServerValues),
  },
}

const installCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: foreground[kind].description,
    ownSignals: true,
    arguments: {},
    options: {
      ...foreground[kind].command.options,
      user: {
        type: 'string',
        value: 'NAME',
        defaultText: kind === 'agent' ? 'svc3-agent; on macOS yours' : 'svc3; on macOS yours',
        description: 'User of the service (created if missing)',
      },
      ...changeOptions('Write the files below this folder and start nothing'),
    },
    examples: foreground[kind].examples,
    run: async (context, values) => carryOut(context, await installRequest(kind, context, values)),
  })

export async function installRequest(kind: ServiceKind, context: Context, values: CommandValues): Promise<Install> {
  const { host } = context
  const { command, without, check } = foreground[kind]
  const options = values.options as Readonly<Record<string, unknown>>
  const joinToken = await joinText(context, options)
  // The check gets the join token as --join in any case. Its warning about --join is meant only for users of that option.
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

/** Returns the whole text, because a join string has more in it than the token. */
async function joinText(context: Context, options: Readonly<Record<string, unknown>>): Promise<string | undefined> {
  const { join, 'join-token-file': file, 'join-token-stdin': fromStdin } = options
  requireOneJoin(options)
  if (fromStdin) return joinTokenOfStdin(context)
  if (typeof file !== 'string') return typeof join === 'string' ? join.trim() : undefined
  return joinTokenIn(path.resolve(context.host.workingDir, file))
}

const withJoin = (values: CommandValues, join: string | undefined): CommandValues =>
  join === undefined
    ? values
    : { ...values, options: { ...values.options, join, 'join-token-file': undefined, 'join-token-stdin': false } }

/** Returns the words of an option. Paths are absolute, because the service has another working folder. */
function wordsOf(name: string, option: Options[string], value: unknown, workingDir: string): readonly string[] {
  if (value === undefined || value === false || ('default' in option && option.default === value)) return []
  if (value === true) return [`--${name}`]
  const isPath = option.type === 'string' && (option.value === 'FILE' || option.value === 'DIR')
  const one = (each: unknown): string[] => [`--${name}`, isPath ? path.resolve(workingDir, String(each)) : String(each)]
  return Array.isArray(value) ? value.flatMap(one) : one(value)
}

const rootOf = ({ host }: Context, root: string | undefined): string | undefined =>
  root === undefined ? undefined : path.resolve(host.workingDir, root)

const changes = {
  upgrade: {
    description: (kind: ServiceKind) =>
      `Updates the service to this version of svc3 and restarts it. ${keeps[kind]}\nIf the new version does not start, the old one is restored.`,
    root: 'Write the files below this folder and restart nothing',
    does: 'Run this after installing a new version of svc3',
  },
  uninstall: {
    description: (kind: ServiceKind) => `Stops and removes the service. Keeps its data. ${keeps[kind]}`,
    root: 'Remove the files below this folder and stop nothing',
    does: 'Remove the service, keep the data',
  },
} as const

const changeCommand = (kind: ServiceKind, action: keyof typeof changes): Command =>
  defineCommand({
    description: changes[action].description(kind),
    ownSignals: true,
    arguments: {},
    options: changeOptions(changes[action].root),
    examples: [{ line: `svc3 ${kind} ${action}`, does: changes[action].does }],
    run: (context, { options }) =>
      carryOut(context, { action, kind, root: rootOf(context, options.root), dryRun: options['dry-run'] }),
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
    options: {
      root: { type: 'string', value: 'DIR', description: 'Look below this folder instead of at this host' },
      ...printed,
    },
    examples: [{ line: `svc3 ${kind} status -o wide`, does: 'Include the user, the data folder and the status text' }],
    run: async (context, { options }) =>
      showStatus(context, await serviceStatus({ kind, root: rootOf(context, options.root) })),
  })

/** Returns exit code 1 if the service does not run. */
export async function showStatus(context: Context, status: ServiceStatus): Promise<number> {
  await context.print([status], columns, '')
  if (status.state !== 'not installed') context.note(`Logs: ${status.log}`)
  return status.state === 'running' ? 0 : 1
}

async function carryOut({ host }: Context, request: ServiceRequest): Promise<number> {
  try {
    await perform(request, host.typedAs, (line) => host.stdout.write(`${line}\n`))
    return 0
  } catch (error) {
    if (error instanceof Failure) throw error
    if (error instanceof NotBuilt) throw new Failure(error.message, 'Run npm run build there first')
    throw new Failure(reasonOf(error), `Check svc3 ${request.kind} status, then run the same command again`)
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

/** On a Mac VMs belong to a person's account, because tart keeps them in its home. */
const usualUser = (kind: ServiceKind): string =>
  process.platform === 'darwin' ? (process.env.SUDO_USER ?? 'root') : defaultUsers[kind]

async function targetOf({ kind, root }: ServiceTarget, say: Say): Promise<Installation> {
  const supervisor = supervisors[process.platform]
  if (!supervisor)
    throw new Failure(`Services are not supported on ${process.platform}`, 'Run svc3 under a supervisor of your own')
  const node = { node: await stableNode(), ownNode: process.execPath }
  const own = { packageDir: checkoutFolder(), ...node, run: runProgram, say }
  return { kind, supervisor, root, isLive: root === undefined, ...own }
}

async function requireHost({ name }: Supervisor, request: ServiceRequest): Promise<void> {
  if (name === 'systemd' && !(await succeeds(fs.access('/run/systemd/system')))) throw noSystemd(request)
  if (!request.dryRun && process.getuid?.() !== 0)
    throw new Failure('Only root can change the services of this host', 'Use sudo')
}

/** Returns a failure with the line to run instead, without the file of the join token, which was not written. */
export function noSystemd(request: ServiceRequest): Failure {
  const message = 'This host does not run systemd'
  if (request.action !== 'install') return new Failure(message, 'Use --root DIR for files installed below a folder')
  const { words } = request
  const token = words.indexOf('--join-token-file')
  const line = ['svc3', ...(token < 0 ? words : words.toSpliced(token, 2)).map(quoted)].join(' ')
  const joined = token < 0 ? '' : ', with --join-token-file FILE at its first start'
  return new Failure(message, `Run this under a supervisor of your own${joined}: ${line}`)
}

/** Reports whether a file is in a folder where hosts install programs for all users. */
const isShared = (file: string): boolean => /^\/(usr|opt|bin|nix|snap)\//.test(file) && !file.includes('/.node/')

/**
 * Returns a path of Node that survives updates, because this process may run from the folder of one version, such as
 * Homebrew's Cellar. Returns undefined for a Node in a checkout or in a home folder, which may be deleted.
 */
async function stableNode(): Promise<string | undefined> {
  const own = process.execPath
  // sudo may have removed Homebrew's folders from PATH.
  const usual = ['/opt/homebrew/bin', '/usr/local/bin', '/usr/bin']
  const searched = (process.env.PATH ?? '').split(':').filter((each) => path.isAbsolute(each))
  for (const folder of [...searched, ...usual]) {
    const file = path.join(folder, 'node')
    const real = await fs.realpath(file).catch(() => undefined)
    if (real === own && isShared(file) && isShared(own)) return file
  }
  return isShared(own) ? own : undefined
}

async function serviceStatus(request: ServiceTarget): Promise<ServiceStatus> {
  const target = await targetOf(request, () => undefined)
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
  upgrade: changeCommand(kind, 'upgrade'),
  uninstall: changeCommand(kind, 'uninstall'),
})
