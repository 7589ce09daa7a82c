// Content from other nodes that have it: from the very nodes that the server named, by their certificates, with a ticket
// that it made for the two of them. Whatever goes wrong, and whatever is not what its digest says, the server is asked
// instead, within seconds.
import https from 'node:https'
import type { Peer } from '../../api/nodes/agent.ts'
import { digestOfBuffer } from '../../images/content/content.ts'
import { chunkBytes, largestManifestBytes } from '../../images/format/format.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type NodeCredentials, namesNode, outOfTime, peerTls, ticketHeader } from '../link/peer-tls.ts'
import type { NearContent } from './content-source.ts'

export interface PeerContent {
  /** Peers that have the image of this manifest; undefined where there are none. */
  near(content: string, signal: AbortSignal): Promise<NearContent | undefined>
}

export interface PeersOptions {
  /** Those that the server knows of. */
  find(content: string, signal: AbortSignal): Promise<readonly Peer[]>
  /** Of this node, as they are now; without any, no peer is asked. */
  credentials(): NodeCredentials | undefined
  readonly log: Log
  /** Tests only. */
  readonly silenceMs?: number | undefined
  readonly chunkMs?: number
  readonly nowMs?: () => number
}

const defaultSilenceMs = 3_000
/** For a whole chunk: one that comes more slowly had better come from the server. */
const defaultChunkMs = 10_000
const avoidedMs = 5 * 60_000
/** Tickets are good for ten minutes at least, and some images take longer. */
const ticketMs = 5 * 60_000
/** A peer that lacks more than this of an image has evicted it. */
const mostMisses = 3
const mostBytes = Math.max(largestManifestBytes, chunkBytes) + 2 ** 16

class Missing extends Error {
  override readonly name = 'Missing'
}

export function createPeers(options: PeersOptions): PeerContent {
  const { find, credentials, log, silenceMs = defaultSilenceMs, chunkMs = defaultChunkMs } = options
  const { nowMs = () => performance.now() } = options
  /** By address: until when nobody asks it. */
  const avoided = new Map<string, number>()

  return {
    async near(content, signal) {
      if (!credentials()) return undefined
      // Without peers it goes as well: no failure here is one.
      const ask = (): Promise<readonly Peer[]> =>
        find(content, AbortSignal.any([signal, AbortSignal.timeout(silenceMs)])).catch(() => [])
      let askedMs = nowMs()
      const peers = new Map((await ask()).filter(isNamed).map((peer) => [addressOf(peer), reachable(peer)]))
      for (const [address, untilMs] of avoided) {
        if (untilMs < nowMs()) avoided.delete(address)
        else peers.delete(address)
      }
      if (peers.size === 0) return undefined
      const agents = [...peers.values()].map(({ agent }) => agent)
      const close = (): void => {
        for (const agent of agents) agent.destroy()
      }
      signal.addEventListener('abort', close, { once: true })

      const renewTickets = async (): Promise<void> => {
        askedMs = nowMs()
        for (const peer of await ask()) {
          const known = peers.get(addressOf(peer))
          if (known) Object.assign(known, peer)
        }
      }

      return async (digest, during) => {
        if (nowMs() - askedMs > ticketMs) await renewTickets()
        const [address = '', peer] = [...peers][Math.floor(Math.random() * peers.size)] ?? []
        if (!peer) return undefined
        try {
          const bytes = await read(peer, credentials(), digest, { silenceMs, chunkMs }, during)
          if ((await digestOfBuffer(bytes)) === digest) return bytes
          throw new Error('it sent other content')
        } catch (error) {
          during.throwIfAborted()
          if (error instanceof Missing && ++peer.misses < mostMisses) return undefined
          log.info('a peer is no longer used', { node: peer.node, address, problem: problemOf(error) })
          peers.delete(address)
          if (!(error instanceof Missing)) avoided.set(address, nowMs() + avoidedMs)
          return undefined
        }
      }
    },
  }
}

const addressOf = ({ ip, port }: Peer): string => `${ip}:${port}`

type NamedPeer = Peer & { readonly uid: string }

/** An older server does not say whom to look for. */
const isNamed = (peer: Peer): peer is NamedPeer => peer.uid !== undefined

/** Each has connections of its own: what was judged for one is never used for another. */
const reachable = (peer: NamedPeer) => ({
  ...peer,
  misses: 0,
  agent: new https.Agent({ keepAlive: true, maxSockets: 4, timeout: 30_000, maxCachedSessions: 0 }),
})

const problemOf = (error: unknown): string =>
  outOfTime.has((error as NodeJS.ErrnoException).code ?? '')
    ? 'its certificate is not valid now; check the clock of this host'
    : reasonOf(error)

async function read(
  peer: NamedPeer & { readonly agent: https.Agent },
  credentials: NodeCredentials | undefined,
  digest: string,
  { silenceMs, chunkMs }: { readonly silenceMs: number; readonly chunkMs: number },
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
      // Nothing is sent before; that its authority is ours, TLS has judged already.
      checkServerIdentity: (_, { subjectaltname }) =>
        namesNode(subjectaltname, peer.uid) ? undefined : new Error('it is not the node that the server named'),
      signal: stop,
    })
    request.on('error', reject)
    request.on('response', (response) => {
      const pieces: Buffer[] = []
      let bytes = 0
      response.on('data', (piece: Buffer) => {
        silence.refresh()
        bytes += piece.length
        pieces.push(piece)
        if (bytes > mostBytes) request.destroy(new Error('it sent more than a chunk can be'))
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(pieces, bytes))
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
