// The session of a scale set and its message queue. GitHub allows one session per scale set.
import type { RetryPolicy } from '../../platform/retry.ts'
import { type JobDemand, type JobNews, noDemand } from '../../rules/runners/jobs.ts'
import { type Batch, type DemandQueue, SourceError } from '../source.ts'
import { type GitHubConnection, textIn } from './connection.ts'
import { call, type GitHubCall, GitHubRefusal, type GithubAnswer } from './http.ts'
import { batchOf, jobDemandOf } from './messages.ts'

export const scaleSetsPath = '_apis/runtime/runnerscalesets'
/** GitHub answers a long poll after about 50 s. */
const pollMs = 90_000

interface SessionOptions {
  readonly scaleSetId: number
  /** Shown at GitHub as the holder of the session. */
  readonly ownerName: string
  readonly retry: RetryPolicy | undefined
}

/** Where messages are read, and the token that reads them. */
interface Queue {
  readonly url: string
  readonly token: string
}

export class JobSession implements DemandQueue {
  readonly demand: JobDemand
  readonly #connection: GitHubConnection
  readonly #options: SessionOptions
  readonly #path: string
  #queue: Queue

  private constructor(connection: GitHubConnection, options: SessionOptions, body: unknown) {
    this.#connection = connection
    this.#options = options
    this.#path = `${scaleSetsPath}/${options.scaleSetId}/sessions/${textIn(body, 'sessionId')}`
    this.#queue = queueIn(connection, body)
    this.demand = jobDemandOf((body as { statistics?: unknown }).statistics) ?? noDemand
  }

  static async open(connection: GitHubConnection, options: SessionOptions, signal: AbortSignal): Promise<JobSession> {
    const { scaleSetId, ownerName } = options
    const path = `${scaleSetsPath}/${scaleSetId}/sessions`
    try {
      const request = {
        method: 'POST',
        path,
        body: { ownerName },
        ok: [200],
        purpose: 'open a session',
        signal,
      } as const
      return new JobSession(connection, options, (await connection.call(request)).body)
    } catch (error) {
      if (error instanceof GitHubRefusal && error.status === 409)
        throw new SourceError('SessionActive', 'Another session of the scale set is active', { isTransient: true })
      throw error
    }
  }

  async next(cursor: number, capacity: number, signal: AbortSignal): Promise<Batch | undefined> {
    const { status, body } = await this.#call(signal, ({ url }) => {
      const address = new URL(url)
      if (cursor > 0) address.searchParams.set('lastMessageId', String(cursor))
      return {
        method: 'GET',
        url: address.href,
        headers: {
          accept: 'application/json; api-version=6.0-preview',
          'x-scalesetmaxcapacity': String(capacity),
        },
        ok: [200, 202],
        purpose: 'wait for jobs',
        timeoutMs: pollMs,
      }
    })
    return status === 202 ? undefined : batchOf(body)
  }

  async acquire(offers: readonly JobNews[], signal: AbortSignal): Promise<void> {
    const body = offers.flatMap(({ requestId }) => (requestId > 0 ? [requestId] : []))
    if (body.length === 0) return
    await this.#call(signal, async () => {
      const url = new URL(await this.#connection.address(signal))
      url.pathname = `${url.pathname.replace(/\/$/, '')}/${scaleSetsPath}/${this.#options.scaleSetId}/acquirejobs`
      url.searchParams.set('api-version', '6.0-preview')
      return { method: 'POST', url: url.href, body, ok: [200], purpose: 'take jobs' }
    })
  }

  async acknowledge({ id }: Batch, signal: AbortSignal): Promise<void> {
    await this.#call(signal, (queue) => {
      const url = new URL(queue.url)
      url.pathname = `${url.pathname.replace(/\/$/, '')}/${id}`
      // 404: an earlier attempt succeeded, but its response was lost.
      return { method: 'DELETE', url: url.href, ok: [200, 204, 404], purpose: 'acknowledge jobs' }
    })
  }

  async close(signal: AbortSignal): Promise<void> {
    const purpose = 'close the session'
    await this.#connection.call({ method: 'DELETE', path: this.#path, ok: [200, 204, 404], purpose, signal })
  }

  /** Calls with the token of the queue. If that has expired, renews it and calls again. */
  async #call(signal: AbortSignal, make: (queue: Queue) => QueueCall | Promise<QueueCall>): Promise<GithubAnswer> {
    const send = async (): Promise<GithubAnswer> => {
      const request = await make(this.#queue)
      return call({ ...request, signal, authorization: `Bearer ${this.#queue.token}` }, this.#options.retry)
    }
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof GitHubRefusal) || error.status !== 401) throw error
      await this.#renew(signal)
      return send()
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    try {
      const request = { method: 'PATCH', path: this.#path, ok: [200], purpose: 'renew the session', signal } as const
      this.#queue = queueIn(this.#connection, (await this.#connection.call(request)).body)
    } catch (error) {
      if (error instanceof GitHubRefusal && error.status === 404)
        throw new SourceError('SessionLost', 'The session has ended', { isTransient: true })
      throw error
    }
  }
}

type QueueCall = Omit<GitHubCall, 'authorization' | 'signal'>

const queueIn = (connection: GitHubConnection, session: unknown): Queue => ({
  url: connection.checked(textIn(session, 'messageQueueUrl')),
  token: textIn(session, 'messageQueueAccessToken'),
})
