// Content from other nodes that have it: from the very nodes that the server named, by their certificates, with a ticket
// that it made for the two of them. Where none has all of an image, the server says of each chunk who has it or fetches it,
// so that of many nodes that start together one fetches it. Whatever goes wrong, and whatever is not what its digest says, the
// source is asked instead.
import https from 'node:https'
import type { Peer } from '../../api/nodes/agent.ts'
import { digestOfBuffer } from '../../images/content/content.ts'
import { chunkBytes, largestManifestBytes } from '../../images/format/format.ts'
import type { Log } from '../../platform/log.ts'
import { reasonOf } from '../../platform/reason.ts'
import { type NodeCredentials, namesNode, outOfTime, peerTls, ticketHeader } from '../link/peer-tls.ts'
import type { NearContent } from './content-source.ts'

export interface PeerContent {
  /** Content of the image of this manifest from peers; undefined where this node has none. */
  near(content: string, signal: AbortSignal): Promise<NearContent | undefined>
}

interface WantedContent {
  /** The digest of the manifest. */
  readonly content: string
  readonly chunk?: string
  /** Nodes that did not have it. */
  readonly without?: string[]
}

export interface PeersOptions {
  /** Those that the server knows of. With a chunk and without any, this node is to fetch it for the others. */
  find(wanted: WantedContent, signal: AbortSignal): Promise<readonly Peer[]>
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
const maxMisses = 3
/** A peer that fetches a chunk is waited for so long; then this node fetches it itself. */
const comingMs = 30_000
/** Of those who should have a chunk, so many are tried. */
const maxTries = 4
/** They are as busy as this node, and the source is dear: they may take so many times longer, and are tried again sooner. */
const partPatience = 4
const partAvoidedMs = 30_000
const maxBytes = Math.max(largestManifestBytes, chunkBytes) + 2 ** 16

class Missing extends Error {
  override readonly name = 'Missing'
}

/** It is fetching it. */
class NotYet extends Error {
  override readonly name = 'NotYet'
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
        find({ content }, AbortSignal.any([signal, AbortSignal.timeout(silenceMs)])).catch(() => [])
      let askedMs = nowMs()
      for (const [address, untilMs] of avoided) if (untilMs < nowMs()) avoided.delete(address)
      const usable = (peer: Peer): boolean => (avoided.get(addressOf(peer)) ?? -1) < nowMs()
      /** Those that have all of it. */
      const peers = new Map((await ask()).filter(usable).map((peer) => [addressOf(peer), reachable(peer)]))
      /** Those that have had chunks of it, with their connections. */
      const parts = new Map<string, Reachable>()
      const isPart = (peer: Reachable): boolean => parts.get(addressOf(peer)) === peer
      const close = (): void => {
        for (const { agent } of [...peers.values(), ...parts.values()]) agent.destroy()
      }
      signal.addEventListener('abort', close, { once: true })

      const renewTickets = async (): Promise<void> => {
        askedMs = nowMs()
        for (const peer of await ask()) {
          const known = peers.get(addressOf(peer))
          if (known) Object.assign(known, peer)
        }
      }

      const checked = async (peer: Reachable, digest: string, during: AbortSignal) => {
        const times = isPart(peer) ? partPatience : 1
        const limits = { silenceMs: times * silenceMs, chunkMs: times * chunkMs }
        const bytes = await read(peer, credentials(), digest, limits, during)
        if ((await digestOfBuffer(bytes)) === digest) return bytes
        throw new Error('it sent other content')
      }
      const leave = (peer: Reachable, error: unknown): void => {
        const address = addressOf(peer)
        log.info('a peer is no longer used', { node: peer.node, address, problem: problemOf(error) })
        peers.delete(address)
        if (!(error instanceof Missing)) avoided.set(address, nowMs() + (isPart(peer) ? partAvoidedMs : avoidedMs))
      }

      const fromWhole: NearContent = async (digest, during) => {
        if (nowMs() - askedMs > ticketMs) await renewTickets()
        const peer = [...peers.values()][Math.floor(Math.random() * peers.size)]
        try {
          return peer && (await checked(peer, digest, during))
        } catch (error) {
          during.throwIfAborted()
          if (peer && !(error instanceof Missing && ++peer.misses < maxMisses)) leave(peer, error)
          return undefined
        }
      }

      /** From one that fetched the same before us. It may have to wait for it in turn, but never for us. */
      const fromPart: NearContent = async (digest, during) => {
        const without: string[] = []
        while (without.length < maxTries) {
          const within = AbortSignal.any([during, AbortSignal.timeout(partPatience * silenceMs)])
          const [found] = await find({ content, chunk: digest, without }, within).catch(() => [])
          during.throwIfAborted()
          if (!found) return undefined
          without.push(found.node)
          if (!usable(found)) continue
          const peer = Object.assign(parts.get(addressOf(found)) ?? reachable(found), found)
          parts.set(addressOf(found), peer)
          const untilMs = nowMs() + comingMs
          for (;;)
            try {
              return await checked(peer, digest, during)
            } catch (error) {
              during.throwIfAborted()
              if (error instanceof NotYet && nowMs() < untilMs) continue
              if (!(error instanceof NotYet || error instanceof Missing)) leave(peer, error)
              break
            }
        }
        return undefined
      }

      return async (digest, during) => (peers.size > 0 ? fromWhole(digest, during) : fromPart(digest, during))
    },
  }
}

const addressOf = ({ ip, port }: Peer): string => `${ip}:${port}`

interface Reachable extends Peer {
  misses: number
  readonly agent: https.Agent
}

/** What guests wait for is not to wait for what nobody does, of which four come at once. */
const maxSockets = 8

/** Each has connections of its own: what was judged for one is never used for another. */
const reachable = (peer: Peer): Reachable => ({
  ...peer,
  misses: 0,
  agent: new https.Agent({ keepAlive: true, maxSockets: maxSockets, timeout: 30_000, maxCachedSessions: 0 }),
})

const problemOf = (error: unknown): string =>
  outOfTime.has((error as NodeJS.ErrnoException).code ?? '')
    ? 'its certificate is not valid now; check the clock of this host'
    : reasonOf(error)

interface ReadOptions {
  readonly silenceMs: number
  readonly chunkMs: number
}

async function read(
  peer: Reachable,
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
        pieces.push(piece)
        bytes += piece.length
        if (bytes > maxBytes) request.destroy(new Error('it sent more than a chunk can be'))
      })
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(pieces, bytes))
        else if (response.statusCode === 202) reject(new NotYet('it is fetching the content itself'))
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
