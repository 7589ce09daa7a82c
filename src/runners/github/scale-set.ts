// GitHub Actions as a source of jobs: one scale set, its session and queue, and its runners.

import type { RetryPolicy } from '../../platform/retry.ts'
import { noDemand } from '../../rules/runners/jobs.ts'
import { type DemandQueue, type KnownRunner, type RunnerSource, SourceError } from '../source.ts'
import { type ConnectionOptions, GitHubConnection, textIn } from './connection.ts'
import { call, GitHubRefusal } from './http.ts'
import { batchOf, jobDemandOf } from './messages.ts'

interface ScaleSetOptions extends ConnectionOptions {
  readonly name: string
  readonly labels: readonly string[]
  readonly group: string
  /** Who holds the session, for people at GitHub. */
  readonly ownerName: string
}

const sets = '_apis/runtime/runnerscalesets'
const agents = '_apis/distributedtask/pools/0/agents'
const defaultGroup = 1
/** GitHub answers after some 50 s. */
const pollMs = 90_000

interface ScaleSet {
  readonly id: number
  readonly name: string
  readonly labels: readonly string[]
}

export function githubSource(options: ScaleSetOptions): RunnerSource {
  const connection = new GitHubConnection(options)
  const { name, group, labels, retry } = options

  async function groupId(signal: AbortSignal): Promise<number> {
    if (group.toLowerCase() === 'default') return defaultGroup
    const { body } = await connection.call({
      method: 'GET',
      path: '_apis/runtime/runnergroups/',
      query: { groupName: group },
      ok: [200],
      purpose: `find runner group ${group}`,
      signal,
    })
    const found = itemsOf(body).find((each) => each.name === group)
    const id = found?.id
    if (typeof id !== 'number')
      throw new SourceError('UnknownGroup', `Runner group ${group} not found, or not open to ${options.scope.url}`)
    return id
  }

  async function findSet(runnerGroupId: number, signal: AbortSignal): Promise<ScaleSet | undefined> {
    const { body } = await connection.call({
      method: 'GET',
      path: sets,
      query: { runnerGroupId: String(runnerGroupId), name },
      ok: [200],
      purpose: `find scale set ${name}`,
      signal,
    })
    return itemsOf(body)
      .map(scaleSetOf)
      .find((each) => each?.name === name)
  }

  const wantedSet = (runnerGroupId: number) => ({
    name,
    runnerGroupId,
    labels: labels.map((label) => ({ type: 'System', name: label })),
    // The runner is baked into the image, and an update would be lost with its VM.
    RunnerSetting: { disableUpdate: true },
  })

  const sameLabels = (set: ScaleSet): boolean => set.labels.toSorted().join() === labels.toSorted().join()

  return {
    async prepare(known, signal) {
      const runnerGroupId = await groupId(signal)
      const found = await findSet(runnerGroupId, signal)
      if (found && found.id === known) {
        if (!sameLabels(found))
          await connection.call({
            method: 'PATCH',
            path: `${sets}/${found.id}`,
            body: wantedSet(runnerGroupId),
            ok: [200],
            purpose: `change the labels of scale set ${name}`,
            signal,
          })
        return found.id
      }
      // One with our labels is ours: its id was not stored before a crash.
      if (found && sameLabels(found)) return found.id
      if (found) throw new SourceError('NameTaken', `Scale set ${name} exists in group ${group} with other labels`)
      const { body } = await connection.call({
        method: 'POST',
        path: sets,
        body: wantedSet(runnerGroupId),
        ok: [200, 201],
        purpose: `create scale set ${name}`,
        signal,
      })
      const made = scaleSetOf(body as Record<string, unknown>)
      if (!made) throw new SourceError('Unreachable', 'GitHub created a scale set without an id', { isTransient: true })
      return made.id
    },

    open: (id, signal) => openQueue(connection, { id, ownerName: options.ownerName, retry }, signal),

    async register(id, runner, signal) {
      try {
        const { body } = await connection.call({
          method: 'POST',
          path: `${sets}/${id}/generatejitconfig`,
          body: { name: runner, workFolder: '_work' },
          ok: [200],
          purpose: `register runner ${runner}`,
          signal,
        })
        const runnerId = (body as { runner?: { id?: unknown } }).runner?.id
        if (typeof runnerId !== 'number')
          throw new SourceError('Unreachable', 'GitHub registered a runner without an id', { isTransient: true })
        return { runnerId, secret: textIn(body, 'encodedJITConfig') }
      } catch (error) {
        if (error instanceof GitHubRefusal && error.typeName === 'AgentExistsException')
          throw new SourceError('NameTaken', `Runner ${runner} exists already`)
        throw error
      }
    },

    async find(runner, signal) {
      const { body } = await connection.call({
        method: 'GET',
        path: agents,
        query: { agentName: runner },
        ok: [200],
        purpose: `find runner ${runner}`,
        signal,
      })
      return itemsOf(body)
        .flatMap((each) => runnerOf(each) ?? [])
        .find((each) => each.name === runner)
    },

    async list(id, signal) {
      const { body } = await connection.call({
        method: 'GET',
        path: agents,
        ok: [200],
        purpose: 'list runners',
        signal,
      })
      return itemsOf(body)
        .filter((each) => each.runnerScaleSetId === undefined || each.runnerScaleSetId === id)
        .flatMap((each) => runnerOf(each) ?? [])
    },

    async remove(runnerId, signal) {
      try {
        await connection.call({
          method: 'DELETE',
          path: `${agents}/${runnerId}`,
          ok: [200, 204, 404],
          purpose: 'remove a runner',
          signal,
        })
        return 'removed'
      } catch (error) {
        if (!(error instanceof GitHubRefusal)) throw error
        if (error.typeName === 'JobStillRunningException') return 'busy'
        if (error.typeName === 'AgentNotFoundException') return 'removed'
        throw error
      }
    },

    async retire(id, signal) {
      const purpose = `delete scale set ${name}`
      await connection.call({ method: 'DELETE', path: `${sets}/${id}`, ok: [200, 204, 404], purpose, signal })
    },
  }
}

async function openQueue(
  connection: GitHubConnection,
  { id, ownerName, retry }: { id: number; ownerName: string; retry: RetryPolicy | undefined },
  signal: AbortSignal,
): Promise<DemandQueue> {
  const sessions = `${sets}/${id}/sessions`
  const { body } = await connection
    .call({ method: 'POST', path: sessions, body: { ownerName }, ok: [200], purpose: 'open a session', signal })
    .catch((error: unknown) => {
      if (error instanceof GitHubRefusal && error.status === 409)
        throw new SourceError('SessionActive', 'Another session of the scale set is active', { isTransient: true })
      throw error
    })
  const sessionId = textIn(body, 'sessionId')
  let queue = queueIn(body)

  function queueIn(session: unknown): { readonly url: string; readonly token: string } {
    return {
      url: connection.checked(textIn(session, 'messageQueueUrl')),
      token: textIn(session, 'messageQueueAccessToken'),
    }
  }

  async function refresh(within: AbortSignal): Promise<void> {
    const path = `${sessions}/${sessionId}`
    try {
      const renewed = await connection.call({
        method: 'PATCH',
        path,
        ok: [200],
        purpose: 'renew the session',
        signal: within,
      })
      queue = queueIn(renewed.body)
    } catch (error) {
      if (error instanceof GitHubRefusal && error.status === 404)
        throw new SourceError('SessionLost', 'The session has ended', { isTransient: true })
      throw error
    }
  }

  /** With the token of the queue; once more with a new one. */
  async function withToken<T>(within: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof GitHubRefusal) || error.status !== 401) throw error
      await refresh(within)
      return work()
    }
  }

  return {
    demand: jobDemandOf((body as { statistics?: unknown }).statistics) ?? noDemand,

    next: (cursor, capacity, within) =>
      withToken(within, async () => {
        const url = new URL(queue.url)
        if (cursor > 0) url.searchParams.set('lastMessageId', String(cursor))
        const answer = await call(
          {
            method: 'GET',
            url: url.href,
            authorization: `Bearer ${queue.token}`,
            headers: {
              accept: 'application/json; api-version=6.0-preview',
              'x-scalesetmaxcapacity': String(capacity),
            },
            ok: [200, 202],
            purpose: 'wait for jobs',
            timeoutMs: pollMs,
            signal: within,
          },
          retry,
        )
        return answer.status === 202 ? undefined : batchOf(answer.body)
      }),

    async acquire(offers, within) {
      const ids = offers.flatMap(({ requestId }) => (requestId > 0 ? [requestId] : []))
      if (ids.length === 0) return
      await withToken(within, async () => {
        const base = new URL(await connection.address(within))
        base.pathname = `${base.pathname.replace(/\/$/, '')}/${sets}/${id}/acquirejobs`
        base.searchParams.set('api-version', '6.0-preview')
        await call(
          {
            method: 'POST',
            url: base.href,
            authorization: `Bearer ${queue.token}`,
            body: ids,
            ok: [200],
            purpose: 'take jobs',
            signal: within,
          },
          retry,
        )
      })
    },

    acknowledge: ({ id: messageId }, within) =>
      withToken(within, async () => {
        const url = new URL(queue.url)
        url.pathname = `${url.pathname.replace(/\/$/, '')}/${messageId}`
        const authorization = `Bearer ${queue.token}`
        // One whose answer was lost is not there any more.
        const ok = [200, 204, 404]
        await call(
          { method: 'DELETE', url: url.href, authorization, ok, purpose: 'acknowledge jobs', signal: within },
          retry,
        )
      }),

    async close(within) {
      const path = `${sessions}/${sessionId}`
      await connection.call({
        method: 'DELETE',
        path,
        ok: [200, 204, 404],
        purpose: 'close the session',
        signal: within,
      })
    },
  }
}

type Fields = Readonly<Record<string, unknown>>

function itemsOf(body: unknown): Fields[] {
  const value = (body as { value?: unknown } | undefined)?.value
  return Array.isArray(value) ? value.filter((each) => typeof each === 'object' && each !== null) : []
}

function scaleSetOf(body: Fields): ScaleSet | undefined {
  const { id, name, labels } = body
  if (typeof id !== 'number' || typeof name !== 'string') return undefined
  const names = Array.isArray(labels) ? labels.map((label) => String((label as Fields)?.name ?? '')) : []
  return { id, name, labels: names }
}

const states: Readonly<Record<string, KnownRunner['state']>> = { online: 'online', busy: 'busy', offline: 'offline' }

function runnerOf({ id, name, status }: Fields): KnownRunner | undefined {
  if (typeof id !== 'number' || typeof name !== 'string') return undefined
  return { id, name, state: (typeof status === 'string' && states[status.toLowerCase()]) || 'unknown' }
}
