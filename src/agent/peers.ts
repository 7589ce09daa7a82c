// Content from other nodes that have it: by TLS with a key that the server gives to the two of them. Whatever goes wrong,
// and whatever is not what its digest says, the server is asked instead, within seconds.
import https from 'node:https'
import type { Peer } from '../api/agent.ts'
import { digestOfBuffer } from '../images/content.ts'
import { chunkBytes, largestManifestBytes } from '../images/format.ts'
import type { Log } from '../platform/log.ts'
import type { NearContent } from './image-content-source.ts'
import { reasonOf } from './messages.ts'

export interface PeerContent {
  /** Peers that have the image of this manifest; undefined where there are none. */
  near(content: string, signal: AbortSignal): Promise<NearContent | undefined>
}

export interface PeersOptions {
  /** Those that the server knows of. */
  find(content: string, signal: AbortSignal): Promise<readonly Peer[]>
  readonly log: Log
  /** Tests only. */
  readonly silenceMs?: number | undefined
  readonly chunkMs?: number
  readonly nowMs?: () => number
}

/** As strong as TLS 1.3's, and of the ones that know pre-shared keys by name the one that hides the past. */
export const pskTls = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const

const defaultSilenceMs = 3_000
/** For a whole chunk: one that comes more slowly had better come from the server. */
const defaultChunkMs = 10_000
const avoidedMs = 5 * 60_000
/** A peer that lacks more than this of an image has evicted it. */
const mostMisses = 3
const mostBytes = Math.max(largestManifestBytes, chunkBytes) + 2 ** 16

class Missing extends Error {
  override readonly name = 'Missing'
}

export function createPeers(options: PeersOptions): PeerContent {
  const { find, log, silenceMs = defaultSilenceMs, chunkMs = defaultChunkMs } = options
  const { nowMs = () => performance.now() } = options
  /** By address: until when nobody asks it. */
  const avoided = new Map<string, number>()

  return {
    async near(content, signal) {
      // Without peers it goes as well: no failure here is one.
      const known = await find(content, AbortSignal.any([signal, AbortSignal.timeout(silenceMs)])).catch(() => [])
      const peers = new Map(known.map((peer) => [addressOf(peer), { ...peer, misses: 0, agent: agentFor(peer) }]))
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

      return async (digest, during) => {
        const [address = '', peer] = [...peers][Math.floor(Math.random() * peers.size)] ?? []
        if (!peer) return undefined
        try {
          const bytes = await read(peer, digest, { silenceMs, chunkMs }, during)
          if ((await digestOfBuffer(bytes)) === digest) return bytes
          throw new Error('what it sent is something else')
        } catch (error) {
          during.throwIfAborted()
          if (error instanceof Missing && ++peer.misses < mostMisses) return undefined
          log.info('a peer is not asked any more', { node: peer.node, address, problem: reasonOf(error) })
          peers.delete(address)
          if (!(error instanceof Missing)) avoided.set(address, nowMs() + avoidedMs)
          return undefined
        }
      }
    },
  }
}

const addressOf = ({ ip, port }: Peer): string => `${ip}:${port}`

const agentFor = ({ identity, key }: Peer): https.Agent =>
  new https.Agent({
    keepAlive: true,
    maxSockets: 4,
    timeout: 30_000,
    ...pskTls,
    pskCallback: () => ({ identity, psk: Buffer.from(key, 'base64') }),
    // Who has the key is the peer: there is no certificate.
    checkServerIdentity: () => undefined,
  })

async function read(
  { ip, port, agent }: Peer & { readonly agent: https.Agent },
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
    const request = https.get({ host: ip, port, path: `/blobs/${digest}`, agent, servername: '', signal: stop })
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
        else reject(response.statusCode === 404 ? new Missing('it has it no more') : new Error('it refuses'))
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
