// Changes of a list as they happen. Goes on by itself after a lost connection, from the last version it has seen.
import type { ItemOf } from '../api/operation.ts'
import { boundedDelay, isTransient, type RetryPolicy, wait } from '../rules/retry.ts'
import { errorFromAnswer, isObject, parseJson, somethingElse } from './answer.ts'
import type { CallInput, Client, ListOperation, RawInput } from './client.ts'
import { ConnectionError, type TransportResponse } from './transport.ts'

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: { readonly resourceVersion: string } }

export interface WatchOptions {
  /** Changes after this version; without it, from what is there now. */
  readonly resourceVersion?: string
  readonly signal: AbortSignal
  /** Tries in a row that bring nothing before the watch gives up. */
  readonly retry?: RetryPolicy
  /** Told when the connection is lost, and when there is one again. */
  readonly onConnection?: (isConnected: boolean) => void
}

const watchRetry: RetryPolicy = { attempts: 12, firstDelayMs: 200, maxDelayMs: 10_000, maxRetryAfterMs: 60_000 }
const maxLineBytes = 8 * 1024 * 1024

/**
 * Ends when the signal aborts. Without a version it begins with what is there, as ADDED, and may begin so again when
 * the connection is lost before the first bookmark.
 * Throws ApiError `Expired` when that version is too old: list again, then watch.
 */
export async function* watch<O extends ListOperation>(
  client: Client,
  operation: O,
  input: CallInput<O>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<ItemOf<O>>> {
  const { signal, retry = watchRetry, onConnection } = options
  let { resourceVersion } = options
  // What is there at the start comes in no order of versions: until a bookmark, there is no place to resume from.
  let isCaughtUp = resourceVersion !== undefined
  for (let attempt = 1; !signal.aborted; attempt++) {
    let failure: unknown
    try {
      const response = await client.open(operation, requestFor(input, resourceVersion, signal))
      onConnection?.(true)
      for await (const value of response.events ?? parsedLines(response, client.baseUrl)) {
        const event = eventOf<ItemOf<O>>(value, client.baseUrl)
        isCaughtUp ||= event.type === 'BOOKMARK'
        if (isCaughtUp) resourceVersion = versionOf(event) ?? resourceVersion
        if (isCaughtUp && resourceVersion !== undefined) client.saw(resourceVersion)
        attempt = 0
        yield event
      }
    } catch (error) {
      if (signal.aborted) return
      if (!isTransient(error)) throw error
      failure = error
      onConnection?.(false)
    }
    if (signal.aborted) return
    if (attempt >= retry.attempts) throw failure ?? endless(client.baseUrl)
    await wait(boundedDelay(failure, attempt, retry), signal).catch(() => undefined)
  }
}

const requestFor = (input: RawInput, resourceVersion: string | undefined, signal: AbortSignal): RawInput => ({
  ...input,
  query: { ...input.query, watch: true, resourceVersion },
  signal,
})

const endless = (address: string): ConnectionError =>
  new ConnectionError('lost', address, `${address} closes every watch immediately`, 'Look into the server log')

async function* parsedLines(response: TransportResponse, address: string): AsyncGenerator<unknown> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of response.body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    if (rest.length > maxLineBytes) {
      throw new ConnectionError('unusable', address, `${address} sent a line that is too long`, 'Check the address')
    }
    for (const line of parts) if (line.trim() !== '') yield parseJson(line)
  }
  // What follows the last newline was cut off: it comes again with the next connection.
}

function eventOf<T>(event: unknown, address: string): WatchEvent<T> {
  if (!isObject(event) || typeof event.type !== 'string' || !isObject(event.object)) {
    throw new ConnectionError('unusable', address, `${address} sent something that is not a change`, somethingElse)
  }
  if (event.type === 'ERROR')
    throw errorFromAnswer(Number(event.object.code), JSON.stringify(event.object), address, undefined)
  // The table of operations says what the objects of this list are; the service checked them when it wrote them.
  return event as unknown as WatchEvent<T>
}

function versionOf({ object }: WatchEvent<unknown>): string | undefined {
  const version = isObject(object) ? object.resourceVersion : undefined
  return typeof version === 'string' ? version : undefined
}
