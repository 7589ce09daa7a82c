// Watches the changes of a list. After a lost connection it resumes from the last version that it has seen.

import { isObject, parseJson } from '../api/json.ts'
import type { ItemOf } from '../api/operation.ts'
import { Backoff, isTransient, type RetryPolicy, retryPolicies, unlessAborted } from '../platform/retry.ts'
import { errorFromAnswer, somethingElse } from './answer.ts'
import type { CallInput, Client, ListOperation, RawInput } from './client.ts'
import { ConnectionError, type TransportResponse } from './transport.ts'

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: { readonly resourceVersion: string } }

export interface WatchOptions {
  /** Start after this version (default: with all present items). */
  readonly resourceVersion?: string
  readonly signal: AbortSignal
  /** When to give up after attempts that bring no event. */
  readonly retry?: RetryPolicy
  /** Called with true whenever a connection opens, also the first, and with false when it is lost. */
  readonly onConnection?: (isConnected: boolean) => void
}

const maxLineBytes = 8 * 1024 * 1024

/**
 * Yields changes until the signal aborts. Without a version it begins with the present items, as ADDED, and may repeat
 * them if the connection is lost before the first bookmark. Throws ApiError `Expired` when the version is too old.
 */
export async function* watch<O extends ListOperation>(
  client: Client,
  operation: O,
  input: CallInput<O>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<ItemOf<O>>> {
  const { signal, retry: policy = retryPolicies.stream, onConnection } = options
  let { resourceVersion } = options
  // The present items are not sorted by version: until a bookmark, there is no version to resume from.
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
  // An incomplete last line is dropped; the next connection sends it again.
}

function eventOf<T>(event: unknown, address: string): WatchEvent<T> {
  if (!isObject(event) || typeof event.type !== 'string' || !isObject(event.object)) {
    throw new ConnectionError('unusable', address, `${address} sent something that is not a change`, somethingElse)
  }
  if (event.type === 'ERROR')
    throw errorFromAnswer(Number(event.object.code), JSON.stringify(event.object), address, undefined)
  // The table of operations has the type of these objects, and the service validated them when it wrote them.
  return event as unknown as WatchEvent<T>
}

function versionOf({ object }: WatchEvent<unknown>): string | undefined {
  const version = isObject(object) ? object.resourceVersion : undefined
  return typeof version === 'string' ? version : undefined
}
