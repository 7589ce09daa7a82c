// GitHub Actions as a source of jobs: one scale set and its runners.
import {
  type DemandQueue,
  type KnownRunner,
  type Registration,
  type RemovalResult,
  type RunnerSource,
  SourceError,
} from '../source.ts'
import { type ConnectionOptions, GitHubConnection, type ServiceCall, textIn } from './connection.ts'
import { GitHubRefusal } from './http.ts'
import { JobSession, scaleSetsPath } from './session.ts'

interface ScaleSetOptions extends ConnectionOptions {
  readonly name: string
  readonly labels: readonly string[]
  readonly group: string
  /** Shown at GitHub as the holder of the session. */
  readonly ownerName: string
}

const runnersPath = '_apis/distributedtask/pools/0/agents'
const defaultGroup = 1

interface ScaleSet {
  readonly id: number
  readonly name: string
  readonly labels: readonly string[]
}

export class GitHubSource implements RunnerSource {
  readonly #options: ScaleSetOptions
  readonly #connection: GitHubConnection

  constructor(options: ScaleSetOptions) {
    this.#options = options
    this.#connection = new GitHubConnection(options)
  }

  async prepare(known: number | undefined, signal: AbortSignal): Promise<number> {
    const { name, group, labels } = this.#options
    const runnerGroupId = await this.#groupId(signal)
    const settings = {
      name,
      runnerGroupId,
      labels: labels.map((label) => ({ type: 'System', name: label })),
      // The image contains the runner. An update would be lost with the VM.
      RunnerSetting: { disableUpdate: true },
    }
    const query = { runnerGroupId: String(runnerGroupId), name }
    const items = await this.#items({ path: scaleSetsPath, query, purpose: `find scale set ${name}`, signal })
    const found = items.map(scaleSetOf).find((each) => each?.name === name)
    const hasLabels = found && found.labels.toSorted().join() === labels.toSorted().join()
    // The labels match: either it is the known scale set, or svc3 created it just before a crash and lost its id.
    if (found && hasLabels) return found.id
    if (found && found.id !== known)
      throw new SourceError('NameTaken', `Scale set ${name} exists in group ${group} with other labels`)
    const request = found
      ? {
          method: 'PATCH' as const,
          path: `${scaleSetsPath}/${found.id}`,
          purpose: `change the labels of scale set ${name}`,
        }
      : { method: 'POST' as const, path: scaleSetsPath, purpose: `create scale set ${name}` }
    const { body } = await this.#connection.call({ ...request, body: settings, ok: [200, 201], signal })
    const id = found?.id ?? scaleSetOf(body as Fields)?.id
    if (id !== undefined) return id
    throw new SourceError('Unreachable', 'GitHub created a scale set without an id', { isTransient: true })
  }

  open(scaleSetId: number, signal: AbortSignal): Promise<DemandQueue> {
    const { ownerName, retry } = this.#options
    return JobSession.open(this.#connection, { scaleSetId, ownerName, retry }, signal)
  }

  async register(id: number, runner: string, signal: AbortSignal): Promise<Registration> {
    try {
      const { body } = await this.#connection.call({
        method: 'POST',
        path: `${scaleSetsPath}/${id}/generatejitconfig`,
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
  }

  async find(runner: string, signal: AbortSignal): Promise<KnownRunner | undefined> {
    const query = { agentName: runner }
    const items = await this.#items({ path: runnersPath, query, purpose: `find runner ${runner}`, signal })
    return items.flatMap((each) => runnerOf(each) ?? []).find((each) => each.name === runner)
  }

  async list(id: number, signal: AbortSignal): Promise<readonly KnownRunner[]> {
    const items = await this.#items({ path: runnersPath, purpose: 'list runners', signal })
    return items
      .filter((each) => each.runnerScaleSetId === undefined || each.runnerScaleSetId === id)
      .flatMap((each) => runnerOf(each) ?? [])
  }

  async remove(runnerId: number, signal: AbortSignal): Promise<RemovalResult> {
    try {
      await this.#delete(`${runnersPath}/${runnerId}`, 'remove a runner', signal)
      return 'removed'
    } catch (error) {
      if (!(error instanceof GitHubRefusal)) throw error
      if (error.typeName === 'JobStillRunningException') return 'busy'
      if (error.typeName === 'AgentNotFoundException') return 'removed'
      throw error
    }
  }

  retire(id: number, signal: AbortSignal): Promise<void> {
    return this.#delete(`${scaleSetsPath}/${id}`, `delete scale set ${this.#options.name}`, signal)
  }

  async #groupId(signal: AbortSignal): Promise<number> {
    const { group, scope } = this.#options
    if (group.toLowerCase() === 'default') return defaultGroup
    const path = '_apis/runtime/runnergroups/'
    const items = await this.#items({
      path,
      query: { groupName: group },
      purpose: `find runner group ${group}`,
      signal,
    })
    const id = items.find((each) => each.name === group)?.id
    if (typeof id === 'number') return id
    throw new SourceError('UnknownGroup', `Runner group ${group} not found, or not open to ${scope.url}`)
  }

  async #items(request: Omit<ServiceCall, 'method' | 'ok'>): Promise<readonly Fields[]> {
    const { body } = await this.#connection.call({ ...request, method: 'GET', ok: [200] })
    const value = (body as { value?: unknown } | undefined)?.value
    return Array.isArray(value) ? value.filter((each) => typeof each === 'object' && each !== null) : []
  }

  async #delete(path: string, purpose: string, signal: AbortSignal): Promise<void> {
    await this.#connection.call({ method: 'DELETE', path, ok: [200, 204, 404], purpose, signal })
  }
}

type Fields = Readonly<Record<string, unknown>>

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
