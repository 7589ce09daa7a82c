// Watches: a list followed by its changes as JSON lines, from a revision or from the present state. A client that reads
// too slowly is disconnected and resumes from the last version it saw.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import type { ListQuery, Operation } from '../../api/operation.ts'
import type { Test } from '../../rules/selectors.ts'
import type { Horizon } from '../../store/horizon.ts'
import { type Change, changeRev, compareRevs, type Entry, isFault, type Rev } from '../../store/store.ts'
import { seenHere } from '../gate/read-own-writes.ts'
import { type Spell, type SpellingServices, spellingOf, usedIn } from '../gate/spelling.ts'
import { piecesOf } from '../transfer/pieces.ts'
import { type StreamServices, stream } from '../transfer/streams.ts'
import { type WatchStep, withExtraChanges } from './derived-changes.ts'
import type { Listing } from './listing.ts'
import type { ListRenderer } from './lists.ts'

interface WatchRequest {
  /** Renders and filters: items of the REST API, or objects of the Kubernetes API. */
  readonly lists: Pick<ListRenderer, 'test' | 'shows' | 'item'>
  readonly listing: Listing<unknown>
  readonly query: ListQuery
  readonly spell: Spell
  readonly signal: AbortSignal
}

interface WatchAnswer extends Omit<WatchRequest, 'signal' | 'spell'> {
  readonly operation: Operation
}

/** Answers `watch=true`, for as long as the caller may see the list. */
export function streamChanges(
  { operation, ...watched }: WatchAnswer,
  request: FastifyRequest,
  reply: FastifyReply,
  services: StreamServices & SpellingServices,
): Promise<FastifyReply> {
  const spell = spellingOf(services, usedIn(request))
  const { visibleRev } = watched.listing
  const sawRev = visibleRev?.()
  const open = (signal: AbortSignal) => openWatch(services, { ...watched, spell, signal })
  const isOver = (): boolean => visibleRev?.() !== sawRev
  return stream({ operation, type: 'application/x-ndjson', open, isOver }, request, reply, services)
}

/** Throws Expired before anything is sent if the requested version is no longer kept. */
export async function openWatch(
  { horizon }: { readonly horizon?: Horizon | undefined },
  request: WatchRequest,
): Promise<AsyncIterable<string>> {
  const { lists, listing, query, signal } = request
  const { view } = listing.collection
  const test = lists.test(query)
  const known = view.rev
  const after =
    query.resourceVersion === undefined ? known : await checkedRevision(query.resourceVersion, known, horizon)
  const present = query.resourceVersion === undefined ? view.range(encodeURIComponent(listing.scope)) : []
  const changes = listing.collection.watch(listing.scope, after, signal)[Symbol.asyncIterator]()
  const first = await changes.next().catch(asExpired)
  const isResumed = query.resourceVersion !== undefined && listing.extraChanges !== undefined
  const missed = isResumed ? await missedAfter(listing, after, signal) : []
  const steps = withExtraChanges(first, changes, listing.extraChanges, missed)
  return spelledBy(request.spell, lines({ ...request, test }, present, steps, changes))
}

/** Returns the keys of items that may have changed after the revision although their records did not. */
async function missedAfter(listing: Listing<unknown>, after: Rev, signal: AbortSignal): Promise<readonly string[]> {
  if (listing.extraAfter) return listing.extraAfter(after, signal).catch(asExpired)
  return listing.collection.view.range(encodeURIComponent(listing.scope)).map(({ key }) => key)
}

export async function* spelledBy(spell: Spell, texts: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const text of texts) yield spell(text)
}

type Filtered = WatchRequest & { readonly test: Test | undefined }

async function* lines(
  request: Filtered,
  present: readonly Entry<never>[],
  steps: AsyncIterable<WatchStep>,
  rest: AsyncIterator<unknown>,
): AsyncGenerator<string> {
  const { lists, listing, test, signal } = request
  const hasLeft = (): boolean => signal.aborted
  let rev: Rev | undefined
  try {
    const shown = (entry: Entry<never>): string =>
      lists.shows(listing, test, entry) ? line('ADDED', lists.item(listing, entry)) : ''
    yield* piecesOf(present, shown, hasLeft)
    for await (const each of steps) {
      if ('touched' in each) {
        let isSent = false
        for await (const text of piecesOf(each.touched, (key) => touchedLine(request, key), hasLeft)) {
          isSent = true
          yield text
        }
        // The records are older than what was sent before, so the bookmark keeps the reader's version from going back.
        if (isSent && rev !== undefined) yield bookmark(rev)
      } else if ('type' in each.batch) {
        rev = each.batch.rev
        yield bookmark(rev)
      } else {
        const last = each.batch.at(-1)
        if (last) rev = changeRev(last)
        yield* piecesOf(each.batch, (change) => changeLine(request, change), hasLeft)
      }
    }
  } catch (error) {
    // The reader fell too far behind, or the store closes. The stream ends, and the client resumes or lists again.
    if (!isFault(error, 'Compacted') && !isFault(error, 'Unavailable') && !signal.aborted) throw error
  } finally {
    await rest.return?.()
  }
}

function changeLine({ lists, listing, test }: Filtered, change: Change): string {
  const before = change.previous as Entry<never> | undefined
  const was = before !== undefined && lists.shows(listing, test, before)
  const after = change.type === 'put' ? (change.entry as Entry<never>) : undefined
  const is = after !== undefined && lists.shows(listing, test, after)
  if (after && is) return line(was ? 'MODIFIED' : 'ADDED', lists.item(listing, after))
  if (!before || !was) return ''
  const rev = change.type === 'put' ? change.entry.rev : change.rev
  return line('DELETED', lists.item(listing, { ...before, rev }))
}

function touchedLine({ lists, listing, test }: Filtered, key: string): string {
  const entry = listing.collection.at(key)
  return entry && lists.shows(listing, test, entry) ? line('MODIFIED', lists.item(listing, entry)) : ''
}

const bookmark = (rev: Rev): string => line('BOOKMARK', JSON.stringify({ resourceVersion: rev }))

const line = (type: string, object: string): string => `{"type":"${type}","object":${object}}\n`

/** Throws Expired for a version that the data never had, such as one from before a backup was restored. */
async function checkedRevision(text: string, known: Rev, horizon: Horizon | undefined): Promise<Rev> {
  if (!/^\d{1,20}$/.test(text)) {
    throw badRequest([invalidField('resourceVersion', 'resourceVersion is not a version of this service')])
  }
  const rev = BigInt(text).toString()
  // Another server may be slightly ahead.
  if (compareRevs(rev, known) > 0 && !(horizon && (await seenHere(horizon, rev)))) throw expired()
  return rev
}

function asExpired(error: unknown): never {
  throw isFault(error, 'Compacted') ? expired() : error
}

const expired = (): ApiError =>
  new ApiError('Expired', 'Changes after that resourceVersion are no longer kept', {
    hint: 'List again and watch from the version of that response',
  })
