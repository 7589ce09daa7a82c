// Content from other nodes of the cluster. The server names peers that have an image, with a ticket for each pair of nodes,
// and peers are authenticated by their certificates. If no peer has all of an image, the server names a node for each chunk, so
// that one of many nodes that start together fetches it from the source. Content is checked against its digest. No failure of a
// peer is an error: the source is asked instead.
import https from 'node:https'
import type { Peer } from '../../api/nodes/agent.ts'
import { digestOfBuffer } from '../../images/content/content.ts'
import { chunkBytes, maxManifestBytes } from '../../images/format/format.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type NodeCredentials, namesNode, outOfTime, peerTls, ticketHeader } from '../link/peer-tls.ts'
import type { NearContent } from './content-source.ts'

export interface PeerContent {
  /** Returns a reader of the image with this manifest; undefined if this node has no credentials yet. */
  near(content: string, signal: AbortSignal): Promise<NearContent | undefined>
}

interface PeerQuery {
  readonly content: string
  readonly chunk?: string
  /** Nodes that did not have the chunk. */
  readonly without?: string[]
}

interface PeersOptions {
  /** Asks the server. An empty answer for a chunk means that this node shall fetch it for the others. */
  find(query: PeerQuery, signal: AbortSignal): Promise<readonly Peer[]>
  credentials(): NodeCredentials | undefined
  readonly log: Log
  /** Tests only, like the next two. */
  readonly silenceMs?: number | undefined
  readonly chunkMs?: number
  readonly nowMs?: () => number
}

const defaultSilenceMs = 3_000
/** A peer that needs longer for a chunk is slower than the server would be. */
const defaultChunkMs = 10_000
const avoidedMs = 5 * 60_000
/** Tickets are valid for at least ten minutes, and some images take longer. */
const ticketMs = 5 * 60_000
/** A peer that lacks more chunks of an image has evicted it. */
const maxMisses = 3
/** How long to wait for a peer that is fetching a chunk, before this node fetches it too. */
const fetchingMs = 30_000
const maxTries = 4
/** Peers that have parts of an image are busy fetching: they get more time and are avoided for less. */
const partTimeFactor = 4
const partAvoidedMs = 30_000
const maxBytes = Math.max(maxManifestBytes, chunkBytes) + 2 ** 16
/** More than a fill fetches at once, so that reads of guests do not wait. */
const maxSockets = 8

class Missing extends Error {
  override readonly name = 'Missing'
}

class StillFetching extends Error {
  override readonly name = 'StillFetching'
}

/** A peer with its own connections, so that none is reused for a peer with other credentials. */
interface Connected extends Peer {
  misses: number
  readonly agent: https.Agent
}

const connected = (peer: Peer): Connected => ({
  ...peer,
  misses: 0,
  agent: new https.Agent({ keepAlive: true, maxSockets, timeout: 30_000, maxCachedSessions: 0 }),
})

const addressOf = ({ ip, port }: Peer): string => `${ip}:${port}`

export function createPeers(options: PeersOptions): PeerContent {
  /** Addresses of failed peers, and until when to avoid them. */
  const avoided = new Map<string, number>()
  return {
    async near(content, signal) {
      if (!options.credentials()) return undefined
      const peers = new ImagePeers(options, content, avoided)
      await peers.find(signal)
      signal.addEventListener('abort', () => peers.close(), { once: true })
      return (digest, during) => peers.read(digest, during)
    },
  }
}

/** The peers that have an image, or parts of it, during one fetch. */
class ImagePeers {
  readonly #options: PeersOptions
  readonly #content: string
  readonly #avoided: Map<string, number>
  readonly #silenceMs: number
  /** Peers that have the complete image, by address. */
  readonly #whole = new Map<string, Connected>()
  /** Peers that have had chunks of it. */
  readonly #parts = new Map<string, Connected>()
  #signal = new AbortController().signal
  #foundMs = 0

  constructor(options: PeersOptions, content: string, avoided: Map<string, number>) {
    this.#options = options
    this.#content = content
    this.#avoided = avoided
    this.#silenceMs = options.silenceMs ?? defaultSilenceMs
  }

  async find(signal: AbortSignal): Promise<void> {
    this.#signal = signal
    for (const [address, untilMs] of this.#avoided) if (untilMs < this.#nowMs) this.#avoided.delete(address)
    for (const peer of await this.#ask()) if (this.#isUsable(peer)) this.#whole.set(addressOf(peer), connected(peer))
  }

  close(): void {
    for (const { agent } of [...this.#whole.values(), ...this.#parts.values()]) agent.destroy()
  }

  read(digest: string, signal: AbortSignal): Promise<Buffer | undefined> {
    return this.#whole.size > 0 ? this.#readFromWhole(digest, signal) : this.#readFromPart(digest, signal)
  }

  get #nowMs(): number {
    return this.#options.nowMs?.() ?? performance.now()
  }

  async #ask(): Promise<readonly Peer[]> {
    this.#foundMs = this.#nowMs
    const limit = AbortSignal.any([this.#signal, AbortSignal.timeout(this.#silenceMs)])
    return this.#options.find({ content: this.#content }, limit).catch(() => [])
  }

  async #readFromWhole(digest: string, signal: AbortSignal): Promise<Buffer | undefined> {
    if (this.#nowMs - this.#foundMs > ticketMs)
      for (const peer of await this.#ask()) Object.assign(this.#whole.get(addressOf(peer)) ?? {}, peer)
    const peer = [...this.#whole.values()][Math.floor(Math.random() * this.#whole.size)]
    try {
      return peer && (await this.#readChecked(peer, digest, signal))
    } catch (error) {
      signal.throwIfAborted()
      if (peer && !(error instanceof Missing && ++peer.misses < maxMisses)) this.#avoid(peer, error)
      return undefined
    }
  }

  /** Reads from a node that was told to fetch the chunk before this node was. It never waits for this node in turn. */
  async #readFromPart(digest: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const without: string[] = []
    while (without.length < maxTries) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(partTimeFactor * this.#silenceMs)])
      const query = { content: this.#content, chunk: digest, without }
      const [found] = await this.#options.find(query, limit).catch(() => [])
      signal.throwIfAborted()
      if (!found) return undefined
      without.push(found.node)
      if (!this.#isUsable(found)) continue
      const peer = Object.assign(this.#parts.get(addressOf(found)) ?? connected(found), found)
      this.#parts.set(addressOf(found), peer)
      const content = await this.#readWhenFetched(peer, digest, signal)
      if (content) return content
    }
    return undefined
  }

  async #readWhenFetched(peer: Connected, digest: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const untilMs = this.#nowMs + fetchingMs
    for (;;)
      try {
        return await this.#readChecked(peer, digest, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof StillFetching && this.#nowMs < untilMs) continue
        if (!(error instanceof StillFetching || error instanceof Missing)) this.#avoid(peer, error)
        return undefined
      }
  }

  async #readChecked(peer: Connected, digest: string, signal: AbortSignal): Promise<Buffer> {
    const factor = this.#hasPart(peer) ? partTimeFactor : 1
    const limits = {
      silenceMs: factor * this.#silenceMs,
      chunkMs: factor * (this.#options.chunkMs ?? defaultChunkMs),
    }
    const bytes = await read(peer, this.#options.credentials(), digest, limits, signal)
    if ((await digestOfBuffer(bytes)) === digest) return bytes
    throw new Error('it sent other content')
  }

  #hasPart(peer: Connected): boolean {
    return this.#parts.get(addressOf(peer)) === peer
  }

  #isUsable(peer: Peer): boolean {
    return (this.#avoided.get(addressOf(peer)) ?? -1) < this.#nowMs
  }

  #avoid(peer: Connected, error: unknown): void {
    const address = addressOf(peer)
    this.#options.log.info('a peer is no longer used', { node: peer.node, address, problem: problemOf(error) })
    this.#whole.delete(address)
    if (error instanceof Missing) return
    this.#avoided.set(address, this.#nowMs + (this.#hasPart(peer) ? partAvoidedMs : avoidedMs))
  }
}

const problemOf = (error: unknown): string =>
  outOfTime.has((error as NodeJS.ErrnoException).code ?? '')
    ? 'its certificate is not valid now; check the clock of this host'
    : reasonOf(error)

interface ReadOptions {
  readonly silenceMs: number
  readonly chunkMs: number
}

async function read(
  peer: Connected,
  credentials: NodeCredentials | undefined,
  digest: string,
  { silenceMs, chunkMs }: ReadOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  const late = new AbortController()
  const silence = setTimeout(() => late.abort(new Error(`it sent nothing for ${silenceMs / 1_000} s`)), silenceMs)
  const whole = setTimeout(() => late.abort(new Error(`it took more than ${chunkMs / 1_000} s`)), chunkMs)
  const stop = AbortSignal.any([signal, late.signal])
  try {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const request = https.get({
      ...peerTls(credentials),
      host: peer.ip,
      port: peer.port,
      path: `/blobs/${digest}`,
      headers: { authorization: ticketHeader(peer) },
      agent: peer.agent,
      servername: '',
      // Called before anything is sent. TLS has verified the authority by then.
      checkServerIdentity: (_, { subjectaltname }) =>
        namesNode(subjectaltname, peer.uid) ? undefined : new Error('it is not the node that the server named'),
      signal: stop,
    })
    request.on('error', reject)
    request.once('information', () => request.destroy(new Error('it sends interim answers')))
    request.on('response', (response) => {
      const length = Number(response.headers['content-length'])
      if (!(length <= maxBytes)) return request.destroy(new Error('it sends more than a chunk can be, or does not say'))
      // Pieces are copied, because each keeps the memory of a whole read, and a peer may send single bytes.
      const content = Buffer.alloc(length)
      let bytes = 0
      response.on('data', (piece: Buffer) => {
        silence.refresh()
        bytes += piece.copy(content, bytes)
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(content)
        else if (response.statusCode === 202) reject(new StillFetching('it is fetching the content itself'))
        else reject(response.statusCode === 404 ? new Missing('it no longer has the content') : new Error('it refuses'))
      })
    })
    return await promise
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error
  } finally {
    clearTimeout(silence)
    clearTimeout(whole)
  }
}
