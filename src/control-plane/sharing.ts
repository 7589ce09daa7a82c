// A server of a cluster on a shared store: its identity, the other servers, and content that they share.
import { randomUUID } from 'node:crypto'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import type { Tokens } from '../auth/tokens.ts'
import type { Replicas } from '../controllers/replicate-images.ts'
import { ContentAwayError, type ContentStore } from '../images/content/content.ts'
import { chunksOf } from '../images/format/manifest.ts'
import { readManifest } from '../images/pack/stored-manifests.ts'
import type { Clock } from '../platform/clock.ts'
import { readFileIfPresent, writeFileAtomically } from '../platform/files.ts'
import type { Log } from '../platform/log.ts'
import { forEachParallel } from '../platform/parallel.ts'
import { type Peers, ServerCalls } from '../server/cluster/server-calls.ts'
import { Servers } from '../server/cluster/servers.ts'
import { shareContent } from '../server/cluster/shared-content.ts'
import { beginEra } from '../server/gate/namespace.ts'
import { type PresenceTracker, SharedPresence } from '../server/nodes/presence.ts'
import type { Certificates } from '../server/tls/certificates.ts'
import type { Collections } from '../store/records/collections.ts'
import { version } from './version.ts'

interface SharingInput {
  readonly dataFolder: string
  readonly collections: Collections
  readonly tokens: Tokens
  readonly certificates: Certificates
  readonly clock: Clock
  readonly log: Log
}

const askMs = 1_500
const parallelChunks = 4

export const sharedContent = (own: ContentStore, { servers, calls }: Peers, log: Log): ContentStore =>
  shareContent({ own, others: () => servers.others(), away: () => servers.away(), calls, log })

/** The manifests whose content is on this server or can be fetched. */
export async function* present(content: ContentStore, manifests: Iterable<string>): AsyncGenerator<string> {
  for (const digest of manifests) if (!content.isShared || (await isHere(content, digest))) yield digest
}

export const replicasIn = (content: ContentStore, servers: Pick<Servers, 'subscribe'>): Replicas => ({
  subscribe: (listener) => servers.subscribe(listener),
  async bring(digest, signal) {
    if (!(await isHere(content, digest))) return false
    let isComplete = true
    const chunks = new Set([...chunksOf(await readManifest(content, digest, signal))].map((chunk) => chunk.digest))
    await forEachParallel(chunks, parallelChunks, async (chunk) => {
      signal.throwIfAborted()
      if (!(await isHere(content, chunk))) isComplete = false
    })
    return isComplete
  },
})

/** Asking for the size of missing content fetches the content from another server. */
async function isHere(content: ContentStore, digest: string): Promise<boolean> {
  try {
    return (await content.size(digest)) !== undefined
  } catch (error) {
    if (error instanceof ContentAwayError) return false
    throw error
  }
}

export const settlePresence = async ({ presence }: { readonly presence: PresenceTracker }): Promise<void> => {
  if (presence instanceof SharedPresence) await presence.settle()
}

export async function openSharing({ dataFolder, collections, tokens, certificates, clock, log }: SharingInput) {
  const self = { id: await identityOf(dataFolder), run: randomUUID(), version }
  const servers = new Servers({ collections, self, clock, log })
  const calls = new ServerCalls({ self, tokens, certificates })
  const known = collections.servers.list().filter(({ value }) => value.id !== self.id)
  const answers = await Promise.all(known.map(({ value }) => calls.answers(value, askMs)))
  // If another server runs, the era stays, because nodes already have desired state of it.
  const isFirst = !answers.includes(true)
  if (isFirst || !collections.cluster.get('', 'id')) await beginEra({ collections, clock }, self.id)
  return { servers, calls, isFirst } satisfies Peers & { isFirst: boolean }
}

/** Stored in the data folder, so that a restarted server has the same identity. */
async function identityOf(dataFolder: string): Promise<string> {
  const file = path.join(dataFolder, 'server.json')
  const text = await readFileIfPresent(file)
  const known: unknown = text === undefined ? undefined : JSON.parse(text)
  if (typeof known === 'object' && known !== null && 'id' in known && typeof known.id === 'string') return known.id
  const id = randomUUID()
  await writeFileAtomically(file, `${JSON.stringify({ id }, null, 2)}\n`, { mode: 0o600 })
  return id
}

/** The address for other servers. Default: where it listens, or an address of this machine. */
export function internalAddress(given: string | undefined, host: string, localUrl: string): string {
  if (given !== undefined) return given
  const { port } = new URL(localUrl)
  const isEverywhere = host === '0.0.0.0' || host === '::'
  const outward = Object.values(os.networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')
  const name = isEverywhere ? (outward?.address ?? '127.0.0.1') : host
  return `https://${net.isIPv6(name) ? `[${name}]` : name}:${port || 443}`
}
