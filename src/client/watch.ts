// Changes of a list as they happen. Goes on by itself after a lost connection, from the last version it has seen.
import type { ItemOf } from '../api/operation.ts'
import { Backoff, isTransient, type RetryPolicy, retryPolicies, unlessAborted } from '../platform/retry.ts'
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
  const { signal, retry: policy = retryPolicies.stream, onConnection } = options
  let { resourceVersion } = options
  // What is there at the start comes in no order of versions: until a bookmark, there is no place to resume from.
  let isCaughtUp = resourceVersion !== undefined
  const backoff = new Backoff({ policy, signal })
  while (!signal.aborted) {
    let failure: unknown = endless(client.baseUrl)
    try {
      const response = await client.open(operation, requestFor(input, resourceVersion, signal))
      onConnection?.(true)
      for await (const value of response.events ?? parsedLines(response, client.baseUrl)) {
        const event = eventOf<ItemOf<O>>(value, client.baseUrl)
        isCaughtUp ||= event.type === 'BOOKMARK'
        if (isCaughtUp) resourceVersion = versionOf(event) ?? resourceVersion
        if (isCaughtUp && resourceVersion !== undefined) client.saw(resourceVersion)
        backoff.progressed()
        yield event
      }
    } catch (error) {
      failure = error
      if (!signal.aborted && isTransient(error)) onConnection?.(false)
    }
    await backoff.failed(failure).catch(unlessAborted(signal))
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
