// Image content in a cluster without a shared disk: each server keeps what was uploaded to it or requested from it, and
// fetches the rest from another server. Content is addressed by digest, so any copy will do.
import { findServerBlobs, getServerBlob } from '../../api/nodes/servers.ts'
import { ContentAwayError, type ContentStore, NoContentError } from '../../images/content/content.ts'
import type { Log } from '../../platform/log.ts'
import { eachAtOnce } from '../../platform/parallel.ts'
import type { KnownServerRecord, ServerRecord } from '../../store/records/server-records.ts'
import type { ServerCalls } from './server-calls.ts'
import { hostOf } from './servers.ts'

interface SharedContentOptions {
  readonly own: ContentStore
  readonly others: () => readonly ServerRecord[]
  /** Servers that cannot be asked, and may have content that nobody else has. */
  readonly away: () => readonly KnownServerRecord[]
  readonly calls: Pick<ServerCalls, 'call' | 'open'>
  readonly log: Log
}

interface Found {
  readonly server: ServerRecord
  readonly bytes: number
}

const askMs = 10_000
/** Timeout of a chunk; whoever needs it asks again. */
const fetchMs = 5 * 60_000
const maxAsked = 5_000
/** The batch size of queries about missing content. */
const looksAtOnce = 500

export function shareContent({ own, others, away, calls, log }: SharedContentOptions): ContentStore {
  const fetching = new Map<string, Promise<boolean>>()
  let asked = new Map<string, PromiseWithResolvers<Found | undefined>>()

  /** Queries of one tick are batched: a node asks about thousands of chunks at once. */
  const find = (digest: string): Promise<Found | undefined> => {
    const known = asked.get(digest)
    if (known) return known.promise
    if (asked.size === 0) setImmediate(() => void ask())
    const question = Promise.withResolvers<Found | undefined>()
    asked.set(digest, question)
    if (asked.size >= maxAsked) void ask()
    return question.promise
  }

  const ask = async (): Promise<void> => {
    const questions = asked
    asked = new Map()
    const unasked = away().map(hostOf)
    for (const server of others()) {
      if (questions.size === 0) return
      try {
        const body = { digests: [...questions.keys()] }
        const { found } = await calls.call(server, findServerBlobs, body, AbortSignal.timeout(askMs))
        for (const { digest, bytes } of found) {
          questions.get(digest)?.resolve({ server, bytes })
          questions.delete(digest)
        }
      } catch (error) {
        log.warn('content could not be requested from a server', { name: server.id, problem: String(error) })
        unasked.push(hostOf(server))
      }
    }
    for (const [digest, question] of questions)
      if (unasked.length === 0) question.resolve(undefined)
      else question.reject(new ContentAwayError(digest, `on any server that answers: ${toComeBack(unasked)}`))
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

  /** Whether it is here now; fetched once for all who wait. */
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
      eachAtOnce(digests, looksAtOnce, async (digest) => {
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

const maxNamed = 5

function toComeBack(hosts: readonly string[]): string {
  const [first = '', ...more] = new Set(hosts)
  if (more.length === 0)
    return `the server ${first} may have it and cannot be reached; start it again, or ${toGiveUp(first)}`
  const rest = more.length < maxNamed ? '' : ` and ${more.length + 1 - maxNamed} more`
  const named = [first, ...more].slice(0, maxNamed).join(', ')
  return `one of the servers ${named}${rest} may have it and cannot be reached; start them again, or ${toGiveUp('SERVER')}`
}

const toGiveUp = (host: string): string =>
  `ask its administrator to give it up ("svc3 server forget ${host}") and to upload the lost content again`
