// Image content in a cluster without a shared disk. Each server stores the content that was uploaded to it or requested
// from it, and fetches other content from another server. Content is addressed by digest, so all copies are equal.
import { findServerBlobs, getServerBlob } from '../../api/nodes/servers.ts'
import { ContentAwayError, type ContentStore, NoContentError } from '../../images/content/content.ts'
import type { Log } from '../../platform/log.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import type { KnownServerRecord, ServerRecord } from '../../store/records/server-records.ts'
import type { ServerCalls } from './server-calls.ts'
import { hostOf } from './servers.ts'

interface SharedContentOptions {
  readonly own: ContentStore
  readonly others: () => readonly ServerRecord[]
  /** Servers that cannot be asked, and may have the only copy of some content. */
  readonly away: () => readonly KnownServerRecord[]
  readonly calls: Pick<ServerCalls, 'call' | 'open'>
  readonly log: Log
}

interface ContentLocation {
  readonly server: ServerRecord
  readonly bytes: number
}

const askMs = 10_000
/** The timeout for a chunk. Clients retry. */
const fetchMs = 5 * 60_000
const maxQueries = 5_000
const parallelLookups = 500

export function shareContent({ own, others, away, calls, log }: SharedContentOptions): ContentStore {
  const fetching = new Map<string, Promise<boolean>>()
  let queries = new Map<string, PromiseWithResolvers<ContentLocation | undefined>>()

  /** Batches the queries of one tick, because a node asks about thousands of chunks at a time. */
  const find = (digest: string): Promise<ContentLocation | undefined> => {
    const known = queries.get(digest)
    if (known) return known.promise
    if (queries.size === 0) setImmediate(() => void ask())
    const query = Promise.withResolvers<ContentLocation | undefined>()
    queries.set(digest, query)
    if (queries.size >= maxQueries) void ask()
    return query.promise
  }

  const ask = async (): Promise<void> => {
    const batch = queries
    queries = new Map()
    const unavailable = away().map(hostOf)
    for (const server of others()) {
      if (batch.size === 0) return
      try {
        const body = { digests: [...batch.keys()] }
        const { found } = await calls.call(server, findServerBlobs, body, AbortSignal.timeout(askMs))
        for (const { digest, bytes } of found) {
          batch.get(digest)?.resolve({ server, bytes })
          batch.delete(digest)
        }
      } catch (error) {
        log.warn('content could not be requested from a server', { name: server.id, problem: String(error) })
        unavailable.push(hostOf(server))
      }
    }
    for (const [digest, query] of batch)
      if (unavailable.length === 0) query.resolve(undefined)
      else query.reject(new ContentAwayError(digest, `on any server that answers: ${whereItMayBe(unavailable)}`))
  }

  const fetch = async (digest: string): Promise<boolean> => {
    if (others().length === 0 && away().length === 0) return false
    const found = await find(digest)
    if (!found) return false
    const { server, bytes } = found
    try {
      const path = getServerBlob.path.replace('{digest}', digest)
      const body = await calls.open(server.internalUrl, path, AbortSignal.timeout(fetchMs))
      await own.putExpected({ digest, bytes }, body)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      log.warn('content could not be copied from another server', { name: digest, problem })
      throw new ContentAwayError(
        digest,
        `here, and could not be taken from ${hostOf(server)}, which has it: ${problem}`,
      )
    }
    return true
  }

  /** Fetches content, single-flight. Returns whether it is on this server now. */
  const bring = (digest: string): Promise<boolean> => {
    const known = fetching.get(digest)
    if (known) return known
    const made = fetch(digest).finally(() => fetching.delete(digest))
    fetching.set(digest, made)
    return made
  }

  const unlessAway = (error: unknown): false => {
    if (error instanceof ContentAwayError) return false
    throw error
  }

  return {
    folder: own.folder,
    isShared: true,
    put: (content, options) => own.put(content, options),
    putExpected: (expected, content, options) => own.putExpected(expected, content, options),
    has: (digest) => own.has(digest),
    hold: (digest, manifest, signal) => own.hold(digest, manifest, signal),
    deleteUnused: (digest, beforeMs) => own.deleteUnused(digest, beforeMs),
    list: (page) => own.list(page),
    async read(digest, maxBytes, signal) {
      try {
        return await own.read(digest, maxBytes, signal)
      } catch (error) {
        if (!(error instanceof NoContentError) || !(await bring(digest))) throw error
        return own.read(digest, maxBytes, signal)
      }
    },
    async size(digest) {
      return (await own.size(digest)) ?? ((await bring(digest)) ? own.size(digest) : undefined)
    },
    requireAll: (digests) =>
      forEachParallel(digests, parallelLookups, async (digest) => {
        if ((await own.size(digest)) === undefined && !(await find(digest))) throw new NoContentError(digest)
      }),
    async *open(digest, part) {
      if ((await own.size(digest)) === undefined) await bring(digest)
      yield* own.open(digest, part)
    },
    async touch(digest) {
      return (await own.touch(digest)) || ((await bring(digest).catch(unlessAway)) && own.touch(digest))
    },
  }
}

function whereItMayBe(hosts: readonly string[]): string {
  const named = [...new Set(hosts)]
  const isOne = named.length === 1
  const which = isOne ? `the server ${named[0]}` : `one of the servers ${named.join(', ')}`
  return (
    `${which} may have it and cannot be reached; start ${isOne ? 'it' : 'them'} again, or ask its administrator to ` +
    `give it up ("svc3 server forget ${isOne ? named[0] : 'SERVER'}") and to upload the lost content again`
  )
}
