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
import type { Peer } from '../client/tls.ts'
import { isLoopback } from '../client/transport.ts'
import { driverNames } from '../drivers/index.ts'
import { decodeJoinString, isJoinString, type JoinString } from '../rules/join-string.ts'
import { imageQuota } from './options.ts'
import type { AgentOptions, NetworkKind } from './run-agent.ts'
import { parseSimulation, simulateOption } from './simulate.ts'

const networks = ['sealed', 'user'] as const satisfies readonly NetworkKind[]

const defaultDataDir = '/var/lib/svc3-agent'
const tokenAdvice =
  'make one with "svc3 node join-token", and give it with --join-token-file FILE or --join-token-stdin'

const options = {
  'api-url': {
    type: 'string',
    short: 'a',
    value: 'URL',
    repeatable: true,
    description: 'Address of the service; the last one if left out',
  },
  'join-token-file': { type: 'string', value: 'FILE', description: 'Read the join token from a file' },
  'join-token-stdin': { type: 'boolean', description: 'Read the join token from standard input' },
  join: {
    type: 'string',
    value: 'STRING',
    secret: true,
    description: 'What "svc3 node join-token" printed; others can see it in the list of processes',
  },
  name: { type: 'string', value: 'NAME', defaultText: 'the name of this host', description: 'Name of the node' },
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
    description: 'What this node has for macOS guests and networks',
  },
  images: { type: 'string', value: 'DIR', defaultText: 'images in the data folder', description: 'Folder of images' },
  driver: { type: 'choice', choices: driverNames, default: 'qemu', description: 'What runs the virtual machines' },
  architecture: { type: 'choice', choices: architectures, description: "Of the VMs; this host's if left out" },
  ip: {
    type: 'string',
    value: 'ADDRESS',
    defaultText: 'the one that reaches the service',
    description: 'Address of this host at which its VMs are reached',
  },
  cpu: { type: 'integer', value: 'CORES', min: 1, max: 4_096, description: 'Cores for VMs; all if left out' },
  memory: { type: 'integer', value: 'GIB', min: 1, max: 900_000, description: 'Memory for VMs; 90 % if left out' },
  'max-vms': { type: 'integer', value: 'COUNT', min: 0, max: 100_000, description: 'So many VMs at once' },
  'image-quota': {
    type: 'string',
    value: 'SIZE',
    defaultText: '80 % of what is free',
    description: 'What copies of images may take of the disk',
  },
  'peer-port': {
    type: 'integer',
    value: 'PORT',
    min: 0,
    max: 65_535,
    description: 'Exchange images with other nodes, and serve them here; 0 takes a free one',
  },
  'renew-key': { type: 'boolean', description: 'Get the node another key; the one that it has is refused then' },
  'remove-unknown': {
    type: 'boolean',
    description: 'Remove VMs that the service does not list, also those that were kept',
  },
  network: {
    type: 'choice',
    choices: networks,
    description: 'Of guests: sealed off, or not; QEMU seals them where it can, tart (by Softnet) if asked',
  },
  simulate: simulateOption,
  ca: { type: 'string', value: 'FILE', description: 'PEM file of the authorities that may vouch for the service' },
  fingerprint: {
    type: 'string',
    value: 'SHA256',
    defaultText: '$SVC3_FINGERPRINT',
    description: 'Accept only a server with a public key of this fingerprint',
  },
} as const satisfies Options

export const command = defineCommand({
  description:
    'Joins the cluster once, with a token of "svc3 node join-token", and by a key of its own ever after. Only reaches out:\nnothing needs to reach this host. Ctrl-C ends the agent; its VMs run on, and the next one takes them over.',
  ownSignals: true,
  arguments: {},
  options,
  examples: [
    {
      line: 'svc3 agent --join-token-file token.txt',
      does: 'Join the cluster that the string in the file names, and run VMs; it is not needed again',
    },
    {
      line: 'svc3 agent --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'The same, by an address of your own',
    },
    { line: 'svc3 agent', does: 'Go on as the node that this host is' },
    { line: 'svc3 agent --renew-key', does: 'The same, by a new key; VMs and the node stay' },
    {
      line: 'svc3 agent --remove-unknown',
      does: 'The same; once, VMs go that were kept because the service had other or older data',
    },
    {
      line: 'svc3 agent --driver apple --api-url https://svc3.example.com --join-token-file token.txt',
      does: 'The same on a Mac with Apple silicon, where tart is installed',
    },
    {
      line: 'svc3 agent --name fake-1 --driver simulated --data ./fake-1 --join-token-file token.txt -a http://127.0.0.1:8080',
      does: 'A node that only pretends',
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
export async function agentOptions(context: Context, options: AgentValues): Promise<AgentOptions> {
  const { host, note } = context
  const dataDir = path.resolve(host.workingDir, options.data ?? (host.env.SVC3_AGENT_DATA || defaultDataDir))
  const given = options['api-url'].length > 0 ? options['api-url'] : (host.env.SVC3_API_URL?.split(',') ?? [])
  const apiUrls = given.filter((url) => url !== '').map((url) => checkUrl(url, '--api-url'))
  for (const url of apiUrls) {
    const isClear = url.startsWith('http:') && !isLoopback(new URL(url).hostname)
    if (isClear) note(`the node's token travels in clear to ${url}, and who listens in can use it; https:// is safer`)
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
    name: options.name ?? hostName(),
    driver: options.driver,
    architecture: options.architecture,
    ip: options.ip === undefined ? undefined : checkedAddress(options.ip),
    cpu: options.cpu,
    memoryGib: options.memory,
    maxVms: options['max-vms'],
    imageQuotaBytes: imageQuota(options['image-quota']),
    peerPort: options['peer-port'],
    network: options.network,
    simulation: parseSimulation(options.simulate),
    joinToken: join?.token,
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
}

function parsedJoin(given: string): JoinString | undefined {
  const text = decodeJoinString(given)
  if (!text && isJoinString(given)) throw new UsageError('the join string is not whole', tokenAdvice)
  return text
}

async function joinFrom(context: Context, { token, file, fromStdin }: TokenSources): Promise<Join | undefined> {
  const { host, note, secrets } = context
  if ([token, file, fromStdin || undefined].filter((source) => source !== undefined).length > 1)
    throw new UsageError('--join, --join-token-file and --join-token-stdin exclude each other', tokenAdvice)
  const keep = (value: string): Join => {
    const text = parsedJoin(value)
    for (const secret of [value, text?.token]) if (secret !== undefined) secrets.add(secret)
    return { token: async () => text?.token ?? value, text }
  }
  if (fromStdin) return keep((await readPassword(context, 'Join token: ')).trim())
  if (file !== undefined) {
    const place = path.resolve(host.workingDir, file)
    const read = async (): Promise<string> => (await fs.readFile(place, 'utf8')).trim()
    // One that is gone has done its work: the node has joined.
    const given = await read().catch(() => '')
    return { token: async () => keep(await read()).token(), text: parsedJoin(given) }
  }
  // Not from the environment: it stays readable in /proc for as long as the agent runs.
  if (token !== undefined) note('--join can be seen by others on this machine; --join-token-file is safer.')
  return token?.trim() ? keep(token.trim()) : undefined
}

/** The token that "svc3 agent install" left is in the data folder; other files are not ours to remove. */
function removal(dataDir: string, file: string | undefined, workingDir: string): (() => Promise<void>) | undefined {
  if (file === undefined) return undefined
  const place = path.resolve(workingDir, file)
  if (path.dirname(place) !== dataDir) return undefined
  return () => fs.rm(place, { force: true })
}

/** As the command line judges servers: by what is given here, by what was accepted before, by authorities. */
function trustOf(
  host: Host,
  apiUrls: readonly string[],
  ca: string | undefined,
  fingerprint: string | undefined,
): AgentOptions['trust'] {
  const file = ca === undefined ? undefined : path.resolve(host.workingDir, ca)
  if (file !== undefined) readAuthorities(file)
  const judge: Host = { ...host, env: { ...host.env, ...(fingerprint && { SVC3_FINGERPRINT: fingerprint }) } }
  const make: AgentOptions['trust'] = (urls, pin) => {
    const byOrigin = new Map(
      urls.map((apiUrl) => [new URL(apiUrl).origin, trustFor(judge, { apiUrl, ca: file, source: '--api-url' })]),
    )
    const first = [...byOrigin.values()].find((trust) => trust !== undefined)
    // Servers that were learned of later have the certificate of those that were known before.
    const judgeOf = (peer: Peer) => (byOrigin.get(peer.origin) ?? first)?.judge(peer)
    const isPinned = (peer: Peer): boolean => pin !== undefined && fingerprint === undefined && peer.fingerprint === pin
    return first && { ca: first.ca, judge: (peer) => (isPinned(peer) ? undefined : judgeOf(peer)) }
  }
  make(apiUrls)
  return make
}

function hostName(): string {
  const name = os.hostname().split('.')[0]?.toLowerCase() ?? ''
  return name.replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, '') || 'node'
}

function checkedAddress(text: string): string {
  if (net.isIPv4(text)) return text
  throw new UsageError(`--ip "${text}" is not an IPv4 address`, 'for example --ip 10.0.0.7')
}
