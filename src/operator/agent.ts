// svc3 agent: its options and how it starts. The agent itself is imported lazily, so that help is fast.
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { architectures } from '../api/architecture.ts'
import { type Arguments, type Context, defineCommand, type Options, type Values } from '../cli/command.ts'
import { checkUrl } from '../cli/connect/connection.ts'
import { readPassword } from '../cli/connect/password.ts'
import { readAuthorities, trustFor } from '../cli/connect/trust.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import { isStranger, type TlsPeer } from '../client/tls.ts'
import { ConnectionError } from '../client/transport.ts'
import { driverNames } from '../drivers/index.ts'
import { isLoopback } from '../rules/addresses.ts'
import { decodeJoinString, isJoinString, type JoinString } from '../rules/join-string.ts'
import { imageQuota } from './options.ts'
import { remembered } from './remembered.ts'
import type { AgentNetwork, RunAgentOptions } from './run-agent.ts'
import { parseSimulation, simulateOption } from './simulate.ts'

const networks = ['sealed', 'user'] as const satisfies readonly AgentNetwork[]

const defaultDataDir = '/var/lib/svc3-agent'
const newToken = 'Create one with svc3 node join-token'
const tokenAdvice = `${newToken}, and pass it with --join-token-file FILE or --join-token-stdin`

const options = {
  'api-url': {
    type: 'string',
    short: 'a',
    value: 'URL',
    repeatable: true,
    description: 'Address of a server (default: the last one)',
  },
  'join-token-file': { type: 'string', value: 'FILE', description: 'Read the join token from a file' },
  'join-token-stdin': { type: 'boolean', description: 'Read the join token from standard input' },
  join: {
    type: 'string',
    value: 'STRING',
    secret: true,
    description: 'Join token (visible to other users; prefer --join-token-file)',
  },
  name: {
    type: 'string',
    value: 'NAME',
    defaultText: 'its name so far, or the host name',
    description: 'Name of the node',
  },
  data: {
    type: 'string',
    value: 'DIR',
    defaultText: `$SVC3_AGENT_DATA, or ${defaultDataDir}`,
    description: 'Folder of the node and its VMs',
  },
  config: {
    type: 'string',
    value: 'FILE',
    defaultText: 'agent.json in the data folder',
    description: 'Settings for macOS guests and networks',
  },
  images: { type: 'string', value: 'DIR', defaultText: 'images in the data folder', description: 'Folder of images' },
  driver: { type: 'choice', choices: driverNames, default: 'qemu', description: 'Driver that runs VMs' },
  architecture: {
    type: 'choice',
    choices: architectures,
    description: 'Architecture of the VMs (default: of this host)',
  },
  ip: {
    type: 'string',
    value: 'ADDRESS',
    defaultText: 'the one that reaches the server',
    description: 'Address of this host for connections to its VMs',
  },
  cpu: {
    type: 'integer',
    value: 'CORES',
    min: 1,
    max: 4_096,
    description: 'Number of CPU cores for VMs (default: all)',
  },
  memory: {
    type: 'gibibytes',
    value: 'GIB',
    max: 900_000,
    description: 'Memory for VMs in GiB, such as 16 or 16G (default: 90 %)',
  },
  'max-vms': { type: 'integer', value: 'COUNT', min: 0, max: 100_000, description: 'Maximum number of VMs' },
  'image-quota': {
    type: 'string',
    value: 'SIZE',
    defaultText: '80 % of the free space',
    description: 'Disk space for copies of images',
  },
  'peer-port': {
    type: 'integer',
    value: 'PORT',
    min: 0,
    max: 65_535,
    description: 'Exchange images with other nodes on this port (0 for any free port)',
  },
  'renew-key': { type: 'boolean', description: 'Replace the key of the node' },
  'remove-unknown': {
    type: 'boolean',
    description: 'Delete VMs that the server does not list',
  },
  network: {
    type: 'choice',
    choices: networks,
    description: 'Network of guests: sealed (isolated) or user',
  },
  simulate: simulateOption,
  ca: { type: 'string', value: 'FILE', description: 'PEM file of the CAs to trust' },
  fingerprint: {
    type: 'string',
    value: 'SHA256',
    defaultText: '$SVC3_FINGERPRINT',
    description: 'Trust only a server key with this fingerprint',
  },
} as const satisfies Options

export const command = defineCommand({
  description:
    'Joins the cluster with a token of svc3 node join-token, and later with the key of the node. Makes outgoing connections\nonly. Ctrl-C stops the agent; VMs keep running, and the next agent takes them over.',
  ownSignals: true,
  arguments: {},
  options,
  examples: [
    {
      line: 'svc3 agent --join-token-file token.txt',
      does: 'Join a cluster and run VMs',
    },
    {
      line: 'svc3 agent --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'Join by another address of the server',
    },
    { line: 'svc3 agent', does: 'Start the agent of a node that has joined' },
    { line: 'svc3 agent --renew-key', does: 'Replace the key of the node' },
    {
      line: 'svc3 agent --remove-unknown',
      does: 'Delete VMs that were kept because the server had other or older data',
    },
    {
      line: 'svc3 agent --driver apple --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'Join a Mac with Apple silicon and tart',
    },
    {
      line: 'svc3 agent --name fake-1 --driver simulated --data ./fake-1 --join-token-file token.txt -a http://127.0.0.1:8080',
      does: 'Join a simulated node',
    },
  ],
  async run(context, { options }) {
    const agent = await agentOptions(context, options)
    const { runAgent } = await import('./run-agent.ts')
    return runAgent(agent)
  },
})

export type AgentValues = Values<Arguments, typeof options>['options']

/** The options, validated. */
export async function agentOptions(context: Context, options: AgentValues): Promise<RunAgentOptions> {
  const { host, note } = context
  const dataDir = path.resolve(host.workingDir, options.data ?? (host.env.SVC3_AGENT_DATA || defaultDataDir))
  const given = options['api-url'].length > 0 ? options['api-url'] : (host.env.SVC3_API_URL?.split(',') ?? [])
  const apiUrls = given.filter((url) => url !== '').map((url) => checkUrl(url, '--api-url'))
  for (const url of apiUrls) {
    const isClear = url.startsWith('http:') && !isLoopback(new URL(url).hostname)
    if (isClear) note(`The token of the node is sent unencrypted to ${url}; use https://`)
  }
  const join = await joinFrom(context, {
    token: options.join,
    file: options['join-token-file'],
    fromStdin: options['join-token-stdin'],
  })
  return {
    apiUrls,
    joinUrls: join?.text?.urls ?? [],
    pin: join?.text?.pin,
    dataDir,
    imageDir:
      options.images === undefined ? path.join(dataDir, 'images') : path.resolve(host.workingDir, options.images),
    configFile: options.config === undefined ? undefined : path.resolve(host.workingDir, options.config),
    name: options.name ?? (await remembered(dataDir)).name ?? hostName(),
    driver: options.driver,
    architecture: options.architecture,
    ip: options.ip === undefined ? undefined : checkedAddress(options.ip),
    cpu: options.cpu,
    memoryGib: options.memory,
    maxVms: options['max-vms'],
    imageQuotaBytes: imageQuota(options['image-quota']),
    peerPort: options['peer-port'],
    network: options.network,
    simulation: parseSimulation(options.simulate, options.driver),
    joinToken: join?.token,
    joinSource: join?.source,
    joined: removal(dataDir, options['join-token-file'], host.workingDir),
    trust: trustOf(host, apiUrls, options.ca, options.fingerprint),
    renewKey: options['renew-key'],
    removeUnknown: options['remove-unknown'],
  }
}

interface TokenSources {
  readonly token: string | undefined
  readonly file: string | undefined
  readonly fromStdin: boolean
}

interface Join {
  /** Asked for only when the node has to join: a file may be gone by then. */
  readonly token: () => Promise<string>
  /** A whole join string was given, not a token alone. */
  readonly text: JoinString | undefined
  /** Where it came from, for messages. */
  readonly source: string
}

function parsedJoin(given: string): JoinString | undefined {
  const text = decodeJoinString(given)
  if (!text && isJoinString(given)) throw new UsageError('The join token is incomplete', tokenAdvice)
  return text
}

async function joinFrom(context: Context, { token, file, fromStdin }: TokenSources): Promise<Join | undefined> {
  const { host, note, secrets } = context
  if ([token, file, fromStdin || undefined].filter((source) => source !== undefined).length > 1)
    throw new UsageError('Use only one of --join, --join-token-file and --join-token-stdin', tokenAdvice)
  const keep = (value: string, source: string): Join => {
    const text = parsedJoin(value)
    for (const secret of [value, text?.token]) if (secret !== undefined) secrets.add(secret)
    return { token: async () => text?.token ?? value, text, source }
  }
  if (fromStdin) return keep(await joinTokenOfStdin(context), 'Standard input')
  if (file !== undefined) {
    const place = path.resolve(host.workingDir, file)
    // One that is gone has done its work: the node has joined.
    const given = await joinTokenIn(place).catch(() => '')
    return { token: async () => keep(await joinTokenIn(place), place).token(), text: parsedJoin(given), source: place }
  }
  // Not from the environment: it stays readable in /proc for as long as the agent runs.
  if (token !== undefined) note('Other users of this machine can see --join; --join-token-file is safer')
  return token?.trim() ? keep(token.trim(), '--join') : undefined
}

export const joinTokenOfStdin = async (context: Context): Promise<string> =>
  (await readPassword(context, 'Join token: ', { noun: 'join token', next: newToken })).trim()

export async function joinTokenIn(file: string): Promise<string> {
  const text = await fs.readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`Cannot read the join token from ${file} (${error.code})`, newToken)
  })
  return text.trim()
}

/** The token that "svc3 agent install" left is in the data folder; other files are not ours to remove. */
function removal(dataDir: string, file: string | undefined, workingDir: string): (() => Promise<void>) | undefined {
  if (file === undefined) return undefined
  const place = path.resolve(workingDir, file)
  if (path.dirname(place) !== dataDir) return undefined
  return () => fs.rm(place, { force: true })
}

const unknownAuthority =
  'If the server has a certificate of your own CA, start the agent with --ca FILE, each time; sudo svc3 agent install --ca FILE keeps it'

/** As the command line judges servers: by what is given here, by what was accepted before, by authorities. */
function trustOf(
  host: Host,
  apiUrls: readonly string[],
  ca: string | undefined,
  fingerprint: string | undefined,
): RunAgentOptions['trust'] {
  const file = ca === undefined ? undefined : path.resolve(host.workingDir, ca)
  if (file !== undefined) readAuthorities(file)
  const judge: Host = { ...host, env: { ...host.env, ...(fingerprint && { SVC3_FINGERPRINT: fingerprint }) } }
  const make: RunAgentOptions['trust'] = (urls, pin) => {
    const byOrigin = new Map(
      urls.map((apiUrl) => [new URL(apiUrl).origin, trustFor(judge, { apiUrl, ca: file, source: '--api-url' })]),
    )
    const first = [...byOrigin.values()].find((trust) => trust !== undefined)
    // Servers that were learned of later have the certificate of those that were known before.
    const judgeOf = (peer: TlsPeer): ConnectionError | undefined => {
      const refusal = (byOrigin.get(peer.origin) ?? first)?.judge(peer)
      if (!refusal || !isStranger(peer) || judge.env.SVC3_FINGERPRINT) return refusal
      return new ConnectionError(refusal.fault, refusal.address, refusal.message, unknownAuthority)
    }
    const isPinned = (peer: TlsPeer): boolean =>
      pin !== undefined && fingerprint === undefined && peer.fingerprint === pin
    return first && { ca: first.ca, judge: (peer) => (isPinned(peer) ? undefined : judgeOf(peer)) }
  }
  make(apiUrls)
  return make
}

function hostName(): string {
  const name = os.hostname().split('.')[0]?.toLowerCase() ?? ''
  return name.replace(/[^a-z0-9-]+/g, '-').replace(/^-+|(?<!-)-+$/g, '') || 'node'
}

function checkedAddress(text: string): string {
  if (net.isIPv4(text)) return text
  throw new UsageError(`Invalid --ip "${text}": not an IPv4 address`, 'For example --ip 10.0.0.7')
}
