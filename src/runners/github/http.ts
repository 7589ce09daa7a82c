// Sends requests to GitHub, with time limits, retries and messages for users. Redirects fail, to protect credentials.
import { createHttpClient, type HttpResponse, readAll } from '../../platform/http.ts'
import {
  isTransient,
  isTransientStatus,
  parseRetryAfter,
  type RetryPolicy,
  retry,
  retryPolicies,
} from '../../platform/retry.ts'
import { SourceError, type SourceProblem } from '../source.ts'

export interface GitHubCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly authorization: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses that are not errors. */
  readonly ok: readonly number[]
  /** Statuses to retry, in addition to transient ones such as 429 and 5xx. */
  readonly retried?: readonly number[]
  /** For messages, such as "open a session". */
  readonly purpose: string
  readonly timeoutMs?: number
  readonly signal: AbortSignal
}

export interface GithubAnswer {
  readonly status: number
  readonly body: unknown
}

const defaultTimeoutMs = 30_000
const maxBytes = 4 * 1024 * 1024
/** The idle limit exceeds the time limits of all calls, of which waiting for jobs has the longest. */
const client = createHttpClient({ idleMs: 120_000, maxSockets: 16 })

export class GitHubRefusal extends SourceError {
  readonly status: number
  readonly typeName: string

  constructor(status: number, typeName: string, message: string, retryAfterMs: number) {
    super(problemOf(status), message, { isTransient: isTransientStatus(status), retryAfterMs })
    this.status = status
    this.typeName = typeName
  }
}

const problems: Readonly<Record<number, SourceProblem>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
}
const problemOf = (status: number): SourceProblem =>
  problems[status] ?? (isTransientStatus(status) ? 'Unreachable' : 'Refused')

/** Sends a request, and retries transient failures. */
export const call = (request: GitHubCall, policy: RetryPolicy = retryPolicies.transfer): Promise<GithubAnswer> =>
  retry(() => once(request), {
    policy,
    signal: request.signal,
    isRetriable: (error) =>
      isTransient(error) || (error instanceof GitHubRefusal && request.retried?.includes(error.status) === true),
  })

async function once(request: GitHubCall): Promise<GithubAnswer> {
  const { method, url, authorization, body, headers, ok, purpose, signal } = request
  const timeout = AbortSignal.timeout(request.timeoutMs ?? defaultTimeoutMs)
  const accept = { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }) }
  let response: HttpResponse
  let text: string
  try {
    response = await client.send({
      method,
      url: new URL(url),
      authorization,
      headers: { ...accept, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any([signal, timeout]),
    })
    text = (await readAll(response, maxBytes)).toString()
  } catch (error) {
    signal.throwIfAborted()
    throw new SourceError('Unreachable', `Could not ${purpose}: ${hostOf(url)} ${reachText(error, timeout)}`, {
      isTransient: true,
    })
  }
  const { status } = response
  // GitHub has sent such answers under load.
  if (status === 200 && method !== 'DELETE' && text.trim() === '')
    throw new SourceError('Unreachable', `Could not ${purpose}: ${hostOf(url)} sent an empty answer`, {
      isTransient: true,
    })
  if (ok.includes(status)) return { status, body: parsed(text, purpose, url) }
  throw refusalOf(request, response, text)
}

function refusalOf({ url, purpose }: GitHubCall, { status, headers }: HttpResponse, text: string): GitHubRefusal {
  const { typeName, message } = errorIn(text)
  const ids = [headers['x-github-request-id'], headers.activityid].filter((id) => id)
  const said = message === '' ? `answered ${status}` : `answered ${status}: ${message}`
  const trace = ids.length > 0 ? ` (request ${ids.join(', ').slice(0, 150)})` : ''
  const retryAfterMs = parseRetryAfter(headers['retry-after'], Date.now()) ?? 0
  return new GitHubRefusal(status, typeName, `Could not ${purpose}: ${hostOf(url)} ${said}${trace}`, retryAfterMs)
}

/** Reads `{typeName, message}` of the Actions service and `{message}` of the REST API. */
export function errorIn(text: string): { readonly typeName: string; readonly message: string } {
  try {
    const { typeName, message } = JSON.parse(withoutBom(text)) as { typeName?: unknown; message?: unknown }
    return {
      typeName: typeof typeName === 'string' ? (typeName.split(',')[0]?.split('.').at(-1) ?? '').slice(0, 100) : '',
      message: typeof message === 'string' ? message.replaceAll(/\p{Cc}/gu, ' ').slice(0, 300) : '',
    }
  } catch {
    return { typeName: '', message: '' }
  }
}

function parsed(text: string, purpose: string, url: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(withoutBom(text))
  } catch {
    throw new SourceError('Unreachable', `Could not ${purpose}: ${hostOf(url)} sent no JSON`, { isTransient: true })
  }
}

const withoutBom = (text: string): string => (text.startsWith('\ufeff') ? text.slice(1) : text)

const hostOf = (url: string): string => URL.parse(url)?.host ?? 'GitHub'

function reachText(error: unknown, timeout: AbortSignal): string {
  if (timeout.aborted) return 'did not answer in time'
  const { code } = error as NodeJS.ErrnoException
  return code === undefined ? 'did not answer' : `did not answer (${code})`
}
