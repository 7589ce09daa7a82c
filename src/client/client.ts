// The client: calls operations of the API table, typed by them. A transport sends requests, in Node or in browsers.
import { ApiError, invalid, invalidField } from '../api/errors.ts'
import { parseJson } from '../api/json.ts'
import type { BodyOf, ItemOf, Operation, ParamsOf, QueryOf, ResponseOf } from '../api/operation.ts'
import { revisionHeader } from '../api/revision.ts'
import { isTransient, type RetryPolicy, retry, retryPolicies, type wait } from '../platform/retry.ts'
import { errorFromAnswer, maxAnswerBytes, somethingElse } from './answer.ts'
import { createRevision, type Revision } from './revision.ts'
import { type BodyStream, ConnectionError, type Transport, type TransportResponse } from './transport.ts'

export interface ClientOptions {
  readonly baseUrl: string
  readonly transport: Transport
  /** A function is called for every request, so that it can renew the token. */
  readonly token?: string | (() => string | Promise<string>) | undefined
  readonly userAgent?: string
  readonly retry?: Partial<RetryPolicy>
  /** The limit of one attempt, from sending to the last byte of the response (default: 30 s). */
  readonly timeoutMs?: number
  /** Clients of the same service share one, so that none gets older data than another has seen. */
  readonly revision?: Revision
  /** Replaced in tests. */
  readonly random?: () => number
  readonly wait?: typeof wait
}

interface CallOptions {
  /** Only for POST (default: generated, the same for all attempts of one call). */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number
}

type Parameters<O extends Operation> = keyof ParamsOf<O> extends never ? { params?: never } : { params: ParamsOf<O> }
type Query<O extends Operation> = QueryOf<O> extends undefined ? { query?: never } : { query?: QueryOf<O> }
type Body<O extends Operation> = BodyOf<O> extends undefined ? { body?: never } : { body: BodyOf<O> }

/** The input of a call: path parameters, query and body, as the operation requires. */
export type CallInput<O extends Operation> = Readonly<Parameters<O> & Query<O> & Body<O>> & CallOptions
type Input<O extends Operation> =
  Record<never, never> extends CallInput<O> ? [input?: CallInput<O>] : [input: CallInput<O>]

export type ListOperation = Operation & { readonly item: NonNullable<Operation['item']> }

interface Exchange<O extends Operation> {
  readonly status: number
  readonly value: ResponseOf<O>
}

export interface Client {
  readonly baseUrl: string
  /** Throws ApiError when the service refuses, ConnectionError when it does not answer. */
  call<O extends Operation>(operation: O, ...input: Input<O>): Promise<ResponseOf<O>>
  /** Like `call`, but also returns the status, because some operations have two success codes. */
  exchange<O extends Operation>(operation: O, ...input: Input<O>): Promise<Exchange<O>>
  /** Returns all items of a list, which it reads page by page. */
  listAll<O extends ListOperation>(operation: O, ...input: Input<O>): Promise<ItemOf<O>[]>
  /** Returns the response as a stream. The request is sent once, without limits of time or size. */
  open(operation: Operation, input: RawInput): Promise<TransportResponse>
  /** Sends a file as the body. The request is sent once, without a limit of time. */
  upload<O extends Operation>(operation: O, input: RawInput & { readonly upload: BodyStream }): Promise<ResponseOf<O>>
  /** Remembers a version that a stream has shown, so that later responses are not older. */
  saw(version: string): void
}

export interface RawInput extends CallOptions {
  readonly params?: Readonly<Record<string, string>> | undefined
  readonly query?: Readonly<Record<string, unknown>> | undefined
  readonly body?: unknown
  /** In addition to the headers of every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly upload?: BodyStream
}

const defaultTimeoutMs = 30_000
const never = new AbortController().signal

export function createClient(options: ClientOptions): Client {
  const { transport, token } = options
  const baseUrl = options.baseUrl.replace(/(?<!\/)\/+$/, '')
  const policy: RetryPolicy = { ...retryPolicies.request, ...options.retry }
  const { revision = createRevision() } = options

  const headersFor = (operation: Operation, input: RawInput): Record<string, string> => ({
    accept: operation.produces ?? 'application/json',
    ...(options.userAgent && { 'user-agent': options.userAgent }),
    ...(input.body !== undefined && { 'content-type': 'application/json' }),
    ...(operation.method === 'POST' && { 'idempotency-key': input.idempotencyKey ?? randomKey() }),
    ...(input.upload && { 'content-type': 'application/octet-stream' }),
    ...input.headers,
  })

  const send = async (
    operation: Operation,
    input: RawInput,
    { headers, signal, isStream = false }: { headers: Record<string, string>; signal: AbortSignal; isStream?: boolean },
  ) => {
    const url = baseUrl + pathOf(operation, input)
    const body = input.body === undefined ? undefined : JSON.stringify(input.body)
    const { upload } = input
    const fresh = !isRepeatable(operation) || upload !== undefined
    const bearer = typeof token === 'function' ? await token() : token
    const seen = revision.latest()
    const all = {
      ...headers,
      ...(bearer && { authorization: `Bearer ${bearer}` }),
      ...(seen !== undefined && { [revisionHeader]: seen }),
    }
    const request = { method: operation.method, url, headers: all, body, upload, signal, fresh, isStream }
    const response = await transport(request)
    if (isSuccess(operation, response.status)) {
      revision.saw(response.header(revisionHeader))
      return { response, url }
    }
    throw errorFromAnswer(response.status, await response.text(maxAnswerBytes), url, response.header('retry-after'))
  }

  const attemptOnce = async (
    operation: Operation,
    input: RawInput,
    headers: Record<string, string>,
  ): Promise<{ status: number; value: unknown }> => {
    const timeoutMs = input.timeoutMs ?? options.timeoutMs ?? defaultTimeoutMs
    // AbortSignal.timeout and .any would add 2 ms to a command.
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(timeoutAfter(timeoutMs, baseUrl)), timeoutMs)
    const follow = (): void => controller.abort(input.signal?.reason)
    input.signal?.addEventListener('abort', follow)
    if (input.signal?.aborted) follow()
    try {
      const { response, url } = await send(operation, input, { headers, signal: controller.signal })
      return { status: response.status, value: decode(operation, await response.text(maxAnswerBytes), url) }
    } finally {
      clearTimeout(timer)
      input.signal?.removeEventListener('abort', follow)
    }
  }

  const exchange = async (operation: Operation, input: RawInput = {}): Promise<{ status: number; value: unknown }> => {
    const headers = headersFor(operation, input)
    return retry(() => attemptOnce(operation, input, headers), {
      policy,
      signal: input.signal,
      isRetriable: (error) => isRepeatable(operation) && !isUnanswered(error) && isTransient(error),
      ...(options.wait && { wait: options.wait }),
      ...(options.random && { random: options.random }),
    })
  }

  const call = async (operation: Operation, input?: RawInput): Promise<unknown> =>
    (await exchange(operation, input)).value

  const listAll = async (operation: Operation, input: RawInput = {}): Promise<unknown[]> => {
    const items: unknown[] = []
    let query = input.query ?? {}
    for (;;) {
      const page = (await call(operation, { ...input, query })) as { items: unknown[]; continue?: string }
      if (!Array.isArray(page.items)) throw notOurs(`The answer of ${baseUrl + operation.path} is not a list`)
      for (const item of page.items) items.push(item)
      if (!page.continue) return items
      query = { ...query, continue: page.continue }
    }
  }

  const stream = (operation: Operation, input: RawInput) =>
    send(operation, input, { headers: headersFor(operation, input), signal: input.signal ?? never, isStream: true })

  const open = async (operation: Operation, input: RawInput): Promise<TransportResponse> =>
    (await stream(operation, input)).response

  const upload = async (operation: Operation, input: RawInput): Promise<unknown> => {
    const { response, url } = await stream(operation, input)
    return decode(operation, await response.text(maxAnswerBytes), url)
  }

  /** Does nothing before a server has sent a revision. One that does not share its store never sends any. */
  const saw = (version: string): void => {
    if (revision.latest() !== undefined) revision.saw(version)
  }

  // Types are checked where `call` is used; one untyped code path serves all operations.
  return { baseUrl, call, exchange, listAll, open, upload, saw } as Client
}

/** Browsers have `crypto.randomUUID` on https and localhost only. */
export const randomKey = (): string =>
  crypto.randomUUID?.() ??
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** GET changes nothing; a POST carries its Idempotency-Key. Anything else is sent once. */
const isRepeatable = (operation: Operation): boolean => operation.method === 'GET' || operation.method === 'POST'

/**
 * A refused connection is not retried, so that a user who forgot to start the service learns it at once; nor is a
 * timeout.
 */
const isUnanswered = (error: unknown): boolean => error instanceof ConnectionError && error.fault !== 'lost'

const isSuccess = (operation: Operation, status: number): boolean =>
  (status >= 200 && status < 300) || Object.hasOwn(operation.also ?? {}, status)

function decode(operation: Operation, text: string, url: string): unknown {
  if (operation.produces) return text
  const value = parseJson(text)
  if (typeof value === 'object' && value !== null) return value
  throw notOurs(`The answer of ${url} is not JSON`)
}

export const timeoutAfter = (milliseconds: number, address: string): ConnectionError => {
  const what = `${address} did not answer within ${milliseconds / 1000} s`
  return new ConnectionError('timeout', address, what, 'Try again; the server may be busy')
}

const notOurs = (message: string): ApiError => new ApiError('InternalError', message, { hint: somethingElse })

function pathOf(operation: Operation, input: RawInput): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, input.params?.[name] ?? ''))
  const pairs = Object.entries(input.query ?? {}).filter((pair) => pair[1] !== undefined)
  const query = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return query ? `${path}?${query}` : path
}

/** A dot segment would change the path. */
function segment(field: string, value: string): string {
  if (value !== '' && value !== '.' && value !== '..') return encodeURIComponent(value)
  throw invalid(field, [invalidField(field, `Invalid ${field} "${value}"`)])
}
