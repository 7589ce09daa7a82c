// The commands about svc3 as a service of this host are the same for agent and server: here once, for both.
import { type Command, defineCommand, type Options, printed, type Values } from '../../command.ts'
import { readPassword } from '../../connect/password.ts'
import type { Context } from '../../context.ts'
import { UsageError } from '../../line/usage.ts'
import type { Column } from '../../output/output.ts'
import type { Programs, ServiceKind, ServiceStatus } from '../../programs.ts'

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

interface Running {
  readonly kind: ServiceKind
  /** What runs in the foreground: its options are those of the service, and it judges them. */
  readonly command: Command
  /** Its options that are not the service's: secrets, and what is decided here. */
  readonly without: readonly string[]
  readonly examples: Command['examples']
  readonly description: string
}

/** What the program would have been given. */
type Asked<Kind extends ServiceKind> = Parameters<Programs[Kind]>[0]

export const installCommand = ({ kind, command, without, examples, description }: Running): Command =>
  defineCommand({
    description,
    ownSignals: true,
    arguments: {},
    options: {
      ...command.options,
      user: {
        type: 'string',
        value: 'NAME',
        defaultText: kind === 'agent' ? 'svc3-agent; on macOS yours' : 'svc3; on macOS yours',
        description: 'User that the service runs as; made if it is not there',
      },
      ...placed,
      ...tried,
    },
    examples,
    async run(context, values) {
      const { host } = context
      const path = process.getBuiltinModule('node:path')
      const options = values.options as Readonly<Record<string, unknown>>
      const joinToken = await joinText(context, options)
      // It is given to the command as --join, whichever way it came: only where that is so, a word about it is due.
      const note = (text: string): void => {
        if (options.join !== undefined || !text.startsWith('--join ')) context.note(text)
      }
      const given = await judged({ ...context, note }, kind, command, withJoin(values, joinToken))
      const { dataDir } = given
      const words = Object.entries(command.options).flatMap(([name, option]) =>
        without.includes(name) ? [] : wordsOf(name, option, options[name], host.workingDir),
      )
      const imageDir = 'imageDir' in given ? given.imageDir : dataDir
      return host.programs.service({
        action: 'install',
        kind,
        root: rootOf(context, values.options.root),
        dryRun: values.options['dry-run'],
        user: values.options.user,
        dataDir,
        writes: path.relative(dataDir, imageDir).startsWith('..') ? [imageDir] : [],
        words: [
          ...[kind, '--data', dataDir, ...words],
          ...(joinToken === undefined ? [] : ['--join-token-file', path.join(dataDir, 'join-token')]),
        ],
        joinToken,
      })
    },
  })

/** As it was given, whatever is in it besides the token: the agent is to read the same. */
async function joinText(context: Context, options: Readonly<Record<string, unknown>>): Promise<string | undefined> {
  const { join, 'join-token-file': file, 'join-token-stdin': fromStdin } = options
  if ([join, file, fromStdin || undefined].filter((source) => source !== undefined).length > 1)
    throw new UsageError('--join, --join-token-file and --join-token-stdin exclude each other', 'give one of them')
  if (fromStdin) return (await readPassword(context, 'Join token: ')).trim()
  if (typeof file !== 'string') return typeof join === 'string' ? join.trim() : undefined
  const { resolve } = process.getBuiltinModule('node:path')
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  const place = resolve(context.host.workingDir, file)
  const text = await readFile(place, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      `the join token cannot be read from ${place} (${error.code})`,
      'svc3 node join-token makes one',
    )
  })
  return text.trim()
}

type Given = Values<Command['arguments'], Options>
const withJoin = (values: Given, join: string | undefined): Given =>
  join === undefined
    ? values
    : { ...values, options: { ...values.options, join, 'join-token-file': undefined, 'join-token-stdin': false } }

/** Runs the command itself, with a program that only takes down what it is given: what that refuses is refused here. */
async function judged<Kind extends ServiceKind>(
  context: Context,
  kind: Kind,
  command: Command,
  values: Given,
): Promise<Asked<Kind>> {
  const { host } = context
  const taken: Asked<Kind>[] = []
  const take = async (options: Asked<Kind>): Promise<number> => {
    taken.push(options)
    return 0
  }
  const programs = { ...host.programs, [kind]: take }
  await command.run({ ...context, host: { ...host, programs } }, values)
  const [given] = taken
  if (!given) throw new Error(`svc3 ${kind} did not start its program`)
  return given
}

/** An option as it was given, with paths that mean the same wherever the service runs. */
function wordsOf(name: string, option: Options[string], value: unknown, workingDir: string): readonly string[] {
  if (value === undefined || value === false || ('default' in option && option.default === value)) return []
  if (value === true) return [`--${name}`]
  const { resolve } = process.getBuiltinModule('node:path')
  const isPath = option.type === 'string' && (option.value === 'FILE' || option.value === 'DIR')
  const one = (each: unknown): string[] => [`--${name}`, isPath ? resolve(workingDir, String(each)) : String(each)]
  return Array.isArray(value) ? value.flatMap(one) : one(value)
}

const rootOf = ({ host }: Context, root: string | undefined): string | undefined =>
  root === undefined ? undefined : process.getBuiltinModule('node:path').resolve(host.workingDir, root)

export const upgradeCommand = (kind: ServiceKind): Command =>
  defineCommand({
    description: `Lets the service run this version of the program, and starts it again. ${keeps[kind]}\nWhere the new version does not come up, the old one is started again.`,
    ownSignals: true,
    arguments: {},
    options: { ...placed, ...tried },
    examples: [{ line: `svc3 ${kind} upgrade`, does: 'After a new version of svc3 was installed' }],
    run: (context, { options }) =>
      context.host.programs.service({
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
      context.host.programs.service({
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
    async run(context, { options }) {
      const status = await context.host.programs.serviceStatus({ kind, root: rootOf(context, options.root) })
      await context.print([status], columns, '')
      if (status.state !== 'not installed') context.note(`what it wrote: ${status.log}`)
      return status.state === 'running' ? 0 : 1
    },
  })
