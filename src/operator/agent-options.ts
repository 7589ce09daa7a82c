// The options of `svc3 agent` and their validation.
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { architectures } from '../api/architecture.ts'
import type { Context, Options } from '../cli/command.ts'
import { checkUrl } from '../cli/connect/connection.ts'
import { readPassword } from '../cli/connect/password.ts'
import { readAuthorities, trustFor } from '../cli/connect/trust.ts'
import type { Host } from '../cli/host.ts'
import { UsageError } from '../cli/line/usage.ts'
import { isUntrusted, type TlsPeer, type Trust } from '../client/tls.ts'
import { ConnectionError } from '../client/transport.ts'
import { driverNames } from '../drivers/index.ts'
import { isLoopback } from '../rules/addresses.ts'
import { decodeJoinString, isJoinString, type JoinString } from '../rules/join-string.ts'
import { imageQuota, imageQuotaOption, type OperatorOptionValues } from './options.ts'
import { remembered } from './remembered.ts'
import { parseSimulation, simulateOption } from './simulate.ts'

const networks = ['sealed', 'user'] as const

const defaultDataDir = '/var/lib/svc3-agent'
const newToken = 'Create one with svc3 node join-token'
const tokenAdvice = `${newToken}, and pass it with --join-token-file FILE or --join-token-stdin`

export const agentTable = {
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
  'image-quota': imageQuotaOption,
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

export type AgentValues = OperatorOptionValues<typeof agentTable>

/** The validated options. */
export type RunAgentOptions = Awaited<ReturnType<typeof agentOptions>>

/** Judges the certificates of servers at these addresses. A server with the key `pin` is trusted without an authority. */
type TrustOf = (apiUrls: readonly string[], pin?: string) => Trust | undefined

export async function agentOptions(context: Context, options: AgentValues) {
  const { host, note } = context
  const dataDir = path.resolve(host.workingDir, options.data ?? (host.env.SVC3_AGENT_DATA || defaultDataDir))
  const urls = options['api-url'].length > 0 ? options['api-url'] : (host.env.SVC3_API_URL?.split(',') ?? [])
  const apiUrls = urls.filter((url) => url !== '').map((url) => checkUrl(url, '--api-url'))
  for (const url of apiUrls) {
    const isClear = url.startsWith('http:') && !isLoopback(new URL(url).hostname)
    if (isClear) note(`The token of the node is sent unencrypted to ${url}; use https://`)
  }
  const join = await joinSource(context, options)
  return {
    /** Default: those that the node used last. */
    apiUrls,
    /** The servers and their key, according to the join string. */
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
    /** Called when the node has to join. */
    joinToken: join?.token,
    /** Where the join token came from, for messages. */
    joinSource: join?.source,
    /** Called when the node has joined. */
    joined: removal(dataDir, options['join-token-file'], host.workingDir),
    trust: trustOf(host, apiUrls, options.ca, options.fingerprint),
    renewKey: options['renew-key'],
    removeUnknown: options['remove-unknown'],
  }
}

interface JoinSource {
  /** Reads a file only when the node has to join, because it may have been deleted since. */
  readonly token: () => Promise<string>
  /** The decoded join string; undefined for a token without addresses. */
  readonly text: JoinString | undefined
  /** Where the token came from, for messages. */
  readonly source: string
}

function parseJoin(joinToken: string): JoinString | undefined {
  const text = decodeJoinString(joinToken)
  if (!text && isJoinString(joinToken)) throw new UsageError('The join token is incomplete', tokenAdvice)
  return text
}

type JoinOptions = Partial<Pick<AgentValues, 'join' | 'join-token-file' | 'join-token-stdin'>>

export function requireOneJoin({ join, 'join-token-file': file, 'join-token-stdin': fromStdin }: JoinOptions): void {
  if ([join, file, fromStdin || undefined].filter((source) => source !== undefined).length > 1)
    throw new UsageError('Use only one of --join, --join-token-file and --join-token-stdin', tokenAdvice)
}

async function joinSource(context: Context, options: JoinOptions): Promise<JoinSource | undefined> {
  const { host, note, secrets } = context
  const { join: token, 'join-token-file': file, 'join-token-stdin': fromStdin } = options
  requireOneJoin(options)
  const keep = (value: string, source: string): JoinSource => {
    const text = parseJoin(value)
    for (const secret of [value, text?.token]) if (secret !== undefined) secrets.add(secret)
    return { token: async () => text?.token ?? value, text, source }
  }
  if (fromStdin) return keep(await joinTokenOfStdin(context), 'Standard input')
  if (file !== undefined) {
    const source = path.resolve(host.workingDir, file)
    // The file is deleted when the node has joined.
    const text = parseJoin(await joinTokenIn(source).catch(() => ''))
    return { token: async () => keep(await joinTokenIn(source), source).token(), text, source }
  }
  // There is no variable for the token, because /proc shows the environment as long as the agent runs.
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

/** Deletes the file only if it is in the data folder, where `svc3 agent install` writes it. */
function removal(dataDir: string, file: string | undefined, workingDir: string): (() => Promise<void>) | undefined {
  if (file === undefined) return undefined
  const resolved = path.resolve(workingDir, file)
  if (path.dirname(resolved) !== dataDir) return undefined
  return () => fs.rm(resolved, { force: true })
}

const unknownAuthority =
  'If the server has a certificate of your own CA, start the agent with --ca FILE, each time; sudo svc3 agent install --ca FILE keeps it'

/** Judges servers as the command line does: by these options, by accepted fingerprints, and by CAs. */
function trustOf(
  host: Host,
  apiUrls: readonly string[],
  ca: string | undefined,
  fingerprint: string | undefined,
): TrustOf {
  const file = ca === undefined ? undefined : path.resolve(host.workingDir, ca)
  if (file !== undefined) readAuthorities(host, file)
  const judge: Host = { ...host, env: { ...host.env, ...(fingerprint && { SVC3_FINGERPRINT: fingerprint }) } }
  const make: TrustOf = (urls, pin) => {
    const byOrigin = new Map(
      urls.map((apiUrl) => [new URL(apiUrl).origin, trustFor(judge, { apiUrl, ca: file, source: '--api-url' })]),
    )
    const first = [...byOrigin.values()].find((trust) => trust !== undefined)
    // Servers that the node learned of later are judged as the first one.
    const judgeOf = (peer: TlsPeer): ConnectionError | undefined => {
      const refusal = (byOrigin.get(peer.origin) ?? first)?.judge(peer)
      if (!refusal || !isUntrusted(peer) || judge.env.SVC3_FINGERPRINT) return refusal
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
