// A stand-in of GitHub Actions for tests: tokens, scale sets, sessions, the message queue and runners, over HTTP on loopback, with
// faults. It is no GitHub: jobs are queued by the test, runners connect by a call, and sessions lapse within a second or two.
// GitHub's own client (actions/scaleset v0.4.0) went through a whole cycle against it, by token and by App: group, set (create, read,
// change, delete), session, 409 of a second one, 401 and refresh, message, acknowledgement, runner by id and by name, a name that is
// taken, a busy runner that stays, end, removal. That run is no part of this project.
//
// What it answers, by request (`…` is the address that `runner-registration` names; all of it JSON):
//   POST app/installations/{id}/access_tokens        201 {token, expires_at}
//   POST {orgs|repos|enterprises}/…/registration-token 201 {token, expires_at}
//   POST actions/runner-registration                 200 {url, token: a JWT with exp}
//   GET  …/runnergroups/?groupName=                  200 {count, value: [{id, name, isDefaultGroup}]}
//   GET  …/runnerscalesets?runnerGroupId=&name=      200 {count, value: [set]}; set: {id, name, runnerGroupId, labels, RunnerSetting,
//                                                    statistics}
//   POST, GET, PATCH, DELETE …/runnerscalesets[/id]  200, 200, 200, 204; 400 while a runner has a job
//   POST …/runnerscalesets/{id}/sessions             200 {sessionId (UUID), ownerName, runnerScaleSet, messageQueueUrl,
//                                                    messageQueueAccessToken, statistics}; 409 while one is active
//   PATCH, DELETE …/sessions/{sid}                   200 the same, new token; 204
//   GET  queue?lastMessageId=                        200 {messageId, messageType, body: JSON as text, statistics}; 202 none
//   DELETE queue/{messageId}                         204
//   POST …/acquirejobs [requestId]                   200 {count, value: granted}
//   POST …/generatejitconfig {name, workFolder}      200 {runner: {id, name, runnerScaleSetId}, encodedJITConfig}; 409
//                                                    AgentExistsException
//   GET  …/agents[/id][?agentName=]                  200 agent or {count, value}; agent: {id, name, runnerScaleSetId, status}; 404
//   DELETE …/agents/{id}                             204; 400 JobStillRunningException
// A job in a message: {messageType, runnerRequestId, jobId, repositoryName, ownerName, jobWorkflowRef, jobDisplayName, workflowRunId,
// eventName, requestLabels, queueTime, scaleSetAssignTime, runnerAssignTime, finishTime}, and by type {acquireJobUrl}, {runnerId,
// runnerName}, {result, runnerId, runnerName}. Statistics: {totalAvailableJobs, totalAcquiredJobs, totalAssignedJobs,
// totalRunningJobs, totalRegisteredRunners, totalBusyRunners, totalIdleRunners}. Errors: {typeName, message}.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, jwtVerify, type KeyObject } from 'jose'

interface Options {
  /** How long a poll waits for messages. */
  readonly pollMs?: number
  /** A silent session ends after this time. */
  readonly lapseMs?: number
  /** The life of the admin token. */
  readonly tokenSeconds?: number
  /** Offers jobs first, as GitHub Enterprise Server does. */
  readonly isOffering?: boolean
  /** The App's public key; if absent, every JWT is accepted. */
  readonly appKey?: CryptoKey | KeyObject
  /** A job that no runner took in this time returns under another id. */
  readonly requeueMs?: number
  readonly groups?: Readonly<Record<string, number>>
}

/** A fault: a status, a response without a body, or one that is lost after the work was done. */
interface Fault {
  /** For example `POST /path`. */
  readonly match: RegExp
  readonly as: number | 'empty' | 'lost'
  times: number
  /** Sent with the refusal. */
  readonly body?: unknown
}

interface StandInJob {
  id: string
  readonly name: string
  /** The name of its scale set; undefined for any. */
  readonly set: string | undefined
  state: 'queued' | 'offered' | 'assigned' | 'running' | 'completed'
  readonly requestId: number
  readonly queuedAt: string
  readonly queuedMs: number
  assignedMs: number
  startedMs: number
  /** The id of the scale set that has it. */
  held?: number
  runner?: string
  result?: string
  /** All runners that ran it; more than one is an error. */
  readonly ranOn: string[]
}

interface StandInRunner {
  readonly id: number
  readonly name: string
  readonly scaleSet: number
  status: 'offline' | 'online' | 'busy'
  connections: number
  job?: StandInJob
  wake?: () => void
}

interface ScaleSet {
  readonly id: number
  name: string
  runnerGroupId: number
  labels: unknown
  RunnerSetting: unknown
}

/** The messages of one scale set, and its client. */
interface Queue {
  session: Session | undefined
  news: object[]
  message: Message | undefined
  messages: number
  capacity: number
  readonly waiting: Set<() => void>
}

interface Session {
  readonly id: string
  readonly scaleSet: number
  readonly ownerName: string
  token: string
  polledMs: number
}

interface Exchange {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
}

interface Message {
  readonly id: number
  readonly body: string
}

export class GitHubStandIn implements AsyncDisposable {
  readonly jobs: StandInJob[] = []
  readonly runners = new Map<number, StandInRunner>()
  readonly sets = new Map<number, ScaleSet>()
  readonly faults: Fault[] = []
  /** What a client must never do. */
  readonly violations: string[] = []
  readonly requests: string[] = []
  /** Announced capacities, by the name of the scale set. */
  readonly capacities: { readonly set: string; readonly capacity: number }[] = []
  /** Messages that are not sent (a type, and how often). */
  readonly untold: { type: string; times: number }[] = []
  /** Messages that are sent late. */
  readonly late: { type: string; times: number; ms: number }[] = []
  /** Runner groups besides the default one. */
  readonly groups: Map<string, number>
  readonly names = new Set<string>()
  badCredentials = false
  /** No request is answered. */
  isAway = false
  maxOnline = 0
  url = ''
  readonly #options: Options
  readonly #server: http.Server
  readonly #queues = new Map<number, Queue>()
  #lastId = 0

  private constructor(options: Options) {
    this.#options = options
    this.groups = new Map(Object.entries(options.groups ?? {}))
    this.#server = http.createServer((request, response) => void this.#handle(request, response))
  }

  static async start(options: Options = {}, port = 0): Promise<GitHubStandIn> {
    const standIn = new GitHubStandIn(options)
    standIn.#server.listen(port, '127.0.0.1')
    await once(standIn.#server, 'listening')
    standIn.url = `http://127.0.0.1:${(standIn.#server.address() as AddressInfo).port}/acme`
    return standIn
  }

  /** Sessions end without an error, as after a restart of GitHub. */
  endSessions(): void {
    for (const queue of this.#queues.values()) queue.session = undefined
  }

  /** Another client opens a session and keeps it until the returned function is called. */
  occupy(): () => void {
    const timer = setInterval(() => {
      for (const queue of this.#queues.values()) if (queue.session === foreign) foreign.polledMs = Date.now()
    }, 50).unref()
    const foreign: Session = {
      id: randomUUID(),
      scaleSet: 0,
      ownerName: 'other',
      token: randomUUID(),
      polledMs: Date.now(),
    }
    for (const queue of this.#queues.values()) queue.session = foreign
    return () => {
      clearInterval(timer)
      for (const queue of this.#queues.values()) if (queue.session === foreign) queue.session = undefined
    }
  }

  /** Another client creates a scale set. */
  addSet(name: string, labels: readonly string[]): number {
    const set = { name, runnerGroupId: 1, labels: labels.map((label) => ({ type: 'System', name: label })) }
    return (this.#createSet({ ...set, RunnerSetting: {} }) as ScaleSet).id
  }

  /** Whether a client is polling for jobs right now. */
  get isHeard(): boolean {
    return [...this.#queues.values()].some(({ session }) => session && !this.#isLapsed(session))
  }

  #isLapsed({ polledMs }: Session): boolean {
    return Date.now() - polledMs > (this.#options.lapseMs ?? 1_500)
  }

  queueJob(name = `job-${this.jobs.length + 1}`, set?: string): StandInJob {
    const job: StandInJob = {
      id: randomUUID(),
      name,
      set,
      state: 'queued',
      requestId: this.#options.isOffering ? this.jobs.length + 1 : 0,
      queuedAt: new Date().toISOString(),
      queuedMs: Date.now(),
      assignedMs: 0,
      startedMs: 0,
      ranOn: [],
    }
    this.jobs.push(job)
    this.#assign()
    return job
  }

  /** A guest starts its runner: waits for a job, which runs until `end`. Undefined: the runner was removed. */
  async connect(jit: string): Promise<{ readonly job: StandInJob; end(result?: string): void } | undefined> {
    const { runnerId } = JSON.parse(Buffer.from(jit, 'base64').toString()) as { runnerId: number }
    const runner = this.runners.get(runnerId)
    if (!runner) return undefined
    runner.connections += 1
    if (runner.connections > 1) this.violations.push(`runner ${runner.name} started twice with one configuration`)
    runner.status = 'online'
    this.maxOnline = Math.max(this.maxOnline, [...this.runners.values()].filter((r) => r.status !== 'offline').length)
    this.#assign()
    while (!runner.job && this.runners.has(runnerId))
      await new Promise<void>((resolve) => {
        runner.wake = resolve
      })
    const { job } = runner
    return job && { job, end: (result = 'succeeded') => this.#complete(runner, job, result) }
  }

  /** Reports a job as completed while its runner is still working. */
  tellCompleted(job: StandInJob, result = 'succeeded'): void {
    this.#tell('JobCompleted', job, { result, runnerId: 0, runnerName: job.runner ?? '' })
  }

  #complete(runner: StandInRunner, job: StandInJob, result: string): void {
    if (job.state === 'completed') return
    job.state = 'completed'
    job.result = result
    this.#drop(runner)
    this.#tell('JobCompleted', job, { result, runnerId: runner.id, runnerName: runner.name })
    this.#assign()
  }

  #drop(runner: StandInRunner): void {
    this.runners.delete(runner.id)
    runner.wake?.()
  }

  /** Assigns jobs to polled sets up to the announced capacity, then to online runners. */
  #assign(): void {
    for (const [id, { session, capacity }] of this.#queues) {
      const set = this.sets.get(id)
      const taken = (): number =>
        this.jobs.filter(({ held, state }) => held === id && (state === 'assigned' || state === 'running')).length
      for (const job of session && set ? this.jobs : []) {
        if (job.state !== 'queued' || (job.set ?? set?.name) !== set?.name || taken() >= capacity) continue
        job.held = id
        if (this.#options.isOffering) {
          job.state = 'offered'
          this.#tell('JobAvailable', job, { acquireJobUrl: '' })
        } else this.#assigned(job)
      }
    }
    for (const runner of this.runners.values()) {
      const isFor = ({ state, held }: StandInJob): boolean => state === 'assigned' && held === runner.scaleSet
      const job = runner.status === 'online' ? this.jobs.find(isFor) : undefined
      if (!job) continue
      job.state = 'running'
      job.startedMs = Date.now()
      job.runner = runner.name
      job.ranOn.push(runner.name)
      if (job.ranOn.length > 1) this.violations.push(`job ${job.name} ran on ${job.ranOn.join(' and ')}`)
      runner.status = 'busy'
      runner.job = job
      runner.wake?.()
      this.#tell('JobStarted', job, { runnerId: runner.id, runnerName: runner.name })
    }
  }

  #assigned(job: StandInJob): void {
    job.state = 'assigned'
    job.assignedMs = Date.now()
    this.#tell('JobAssigned', job, {})
    const { requeueMs } = this.#options
    if (requeueMs === undefined) return
    setTimeout(() => {
      if (job.state !== 'assigned') return
      this.#tell('JobCompleted', job, { result: 'canceled', runnerId: 0, runnerName: '' })
      job.id = randomUUID()
      job.state = 'queued'
      this.#assign()
    }, requeueMs).unref()
  }

  #tell(messageType: string, job: StandInJob, more: object): void {
    const untold = this.untold.find(({ type, times }) => type === messageType && times > 0)
    if (untold) {
      untold.times -= 1
      return
    }
    const late = this.late.find(({ type, times }) => type === messageType && times > 0)
    if (late) {
      late.times -= 1
      const told = { ...job }
      setTimeout(() => this.#tell(messageType, told, more), late.ms).unref()
      return
    }
    const queue = this.#queues.get(job.held ?? 0)
    if (!queue) return
    const now = new Date().toISOString()
    queue.news.push({
      messageType,
      runnerRequestId: job.requestId,
      jobId: this.#options.isOffering ? '' : job.id,
      repositoryName: 'app',
      ownerName: 'acme',
      jobWorkflowRef: 'acme/app/.github/workflows/ci.yml@refs/heads/main',
      jobDisplayName: job.name,
      workflowRunId: 0,
      eventName: 'push',
      requestLabels: ['self-hosted'],
      queueTime: job.queuedAt,
      scaleSetAssignTime: now,
      runnerAssignTime: now,
      finishTime: now,
      ...more,
    })
    for (const wake of queue.waiting) wake()
  }

  #statistics(set: number) {
    const count = (...states: StandInJob['state'][]): number =>
      this.jobs.filter(({ held, state }) => held === set && states.includes(state)).length
    const runners = [...this.runners.values()].filter(({ scaleSet }) => scaleSet === set)
    return {
      totalAvailableJobs: count('offered'),
      totalAcquiredJobs: count('assigned'),
      totalAssignedJobs: count('assigned', 'running'),
      totalRunningJobs: count('running'),
      totalRegisteredRunners: runners.length,
      totalBusyRunners: runners.filter(({ status }) => status === 'busy').length,
      totalIdleRunners: runners.filter(({ status }) => status === 'online').length,
    }
  }

  async #handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url)
    const line = `${request.method} ${url.pathname}`
    if (this.isAway) return void response.destroy()
    this.requests.push(line)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const fault = this.faults.find(({ match, times }) => times > 0 && match.test(line))
    if (fault) fault.times -= 1
    const send = (status: number, body?: unknown): void => {
      response.writeHead(status, {
        'content-type': 'application/json',
        activityid: randomUUID(),
        'x-github-request-id': 'STAND:IN',
        ...(status === 429 && { 'retry-after': '0' }),
      })
      // Some responses of GitHub begin with a byte order mark.
      response.end(body === undefined ? '' : `\ufeff${JSON.stringify(body)}`)
    }
    if (fault && typeof fault.as === 'number')
      return send(fault.as, fault.body ?? { typeName: 'Fault', message: `A fault of the stand-in: ${fault.as}` })
    if (fault?.as === 'empty') return void response.writeHead(200).end()
    const [status, body] = await this.#answer({ request, response }, url, text ? JSON.parse(text) : undefined)
    if (fault?.as === 'lost') return void response.destroy()
    send(status, body)
  }

  async #answer({ request, response }: Exchange, url: URL, body: unknown): Promise<[number, unknown?]> {
    const { method = 'GET', headers } = request
    const path = url.pathname.replace(/^\/api\/v3/, '')
    const authorization = headers.authorization ?? ''
    const soon = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString()
    if (this.badCredentials && !path.startsWith('/_')) return [401, { message: 'Bad credentials' }]
    if (/^\/app\/installations\/\d+\/access_tokens$/.test(path)) {
      const { appKey } = this.#options
      if (appKey && !(await jwtVerify(authorization.slice(7), appKey).catch(() => undefined)))
        return [401, { message: 'A JSON web token could not be decoded' }]
      return [201, { token: 'ghs_standin', expires_at: soon(3_600) }]
    }
    if (path.endsWith('/actions/runners/registration-token'))
      return authorization === 'Bearer ghs_standin' || authorization === 'Bearer ghp_standin'
        ? [201, { token: 'registration', expires_at: soon(3_600) }]
        : [401, { message: 'Bad credentials' }]
    if (path === '/actions/runner-registration')
      return authorization === 'RemoteAuth registration'
        ? [200, { url: `${url.origin}/_service/tenant`, token: unsignedJwt(this.#options.tokenSeconds ?? 3_600) }]
        : [401, { message: 'Bad credentials' }]
    if (path.startsWith('/_queue')) return this.#queue({ request, response }, method, url, authorization)
    if (!authorization.startsWith('Bearer ')) return [401, { typeName: 'Unauthorized', message: 'No token' }]
    return this.#service(method, path.replace('/_service/tenant/_apis/', ''), url, body)
  }

  #service(method: string, path: string, url: URL, body: unknown): [number, unknown?] {
    if (path === 'runtime/runnergroups/') {
      const name = url.searchParams.get('groupName') ?? ''
      const id = this.groups.get(name)
      return [200, listed(id === undefined ? [] : [{ id, name, isDefaultGroup: false }])]
    }
    if (path.startsWith('distributedtask/pools/0/agents')) return this.#agents(method, path, url)
    const [, , id, noun, session] = path.split('/')
    const set = id === undefined ? undefined : this.sets.get(Number(id))
    if (id === undefined) {
      if (method === 'POST') return [200, this.#createSet(body as Omit<ScaleSet, 'id'>)]
      const found = [...this.sets.values()].filter(
        ({ name, runnerGroupId }) =>
          name === url.searchParams.get('name') && String(runnerGroupId) === url.searchParams.get('runnerGroupId'),
      )
      return [200, listed(found.map((each) => this.#shownSet(each)))]
    }
    if (!set) return [404, { typeName: 'RunnerScaleSetNotFoundException', message: 'No such scale set' }]
    if (noun === 'sessions') return this.#sessions(method, set, session, body)
    if (noun === 'acquirejobs') {
      const ids = body as number[]
      const granted = this.jobs.filter((job) => job.state === 'offered' && ids.includes(job.requestId))
      for (const job of granted) this.#assigned(job)
      this.#assign()
      return [200, listed(granted.map(({ requestId }) => requestId))]
    }
    if (noun === 'generatejitconfig') return this.#register(set, (body as { name: string }).name)
    if (method === 'PATCH') Object.assign(set, body)
    if (method !== 'DELETE') return [200, this.#shownSet(set)]
    if ([...this.runners.values()].some(({ status, scaleSet }) => status === 'busy' && scaleSet === set.id))
      return [400, { typeName: 'RunnerScaleSetBusyException', message: 'A runner of the scale set has a job' }]
    this.sets.delete(set.id)
    this.#queues.delete(set.id)
    return [204]
  }

  #createSet(body: Omit<ScaleSet, 'id'>): object {
    const set = { ...body, id: this.#newId() }
    this.sets.set(set.id, set)
    this.#queues.set(set.id, {
      session: undefined,
      news: [],
      message: undefined,
      messages: 0,
      capacity: 0,
      waiting: new Set(),
    })
    return this.#shownSet(set)
  }

  #shownSet(set: ScaleSet): object {
    return { ...set, statistics: this.#statistics(set.id) }
  }

  #register(set: ScaleSet, name: string): [number, unknown] {
    if ([...this.runners.values()].some((runner) => runner.name === name))
      return [
        409,
        { typeName: 'GitHub.DistributedTask.WebApi.AgentExistsException, GitHub', message: `${name} exists` },
      ]
    if (this.names.has(name)) this.violations.push(`the name ${name} was used for a second runner`)
    this.names.add(name)
    const runner: StandInRunner = { id: this.#newId(), name, scaleSet: set.id, status: 'offline', connections: 0 }
    this.runners.set(runner.id, runner)
    const encodedJITConfig = Buffer.from(JSON.stringify({ runnerId: runner.id, name })).toString('base64')
    return [200, { runner: { id: runner.id, name, runnerScaleSetId: set.id }, encodedJITConfig }]
  }

  #agents(method: string, path: string, url: URL): [number, unknown?] {
    const [, , , , id] = path.split('/')
    const shown = ({ id, name, scaleSet, status }: StandInRunner) => ({ id, name, runnerScaleSetId: scaleSet, status })
    if (id === undefined) {
      const name = url.searchParams.get('agentName')
      const all = [...this.runners.values()].filter((runner) => name === null || runner.name === name)
      return [200, listed(all.map(shown))]
    }
    const runner = this.runners.get(Number(id))
    if (method === 'GET')
      return runner ? [200, shown(runner)] : [404, { typeName: 'AgentNotFoundException', message: 'No such runner' }]
    if (runner?.status === 'busy')
      return [400, { typeName: 'JobStillRunningException', message: `${runner.name} runs a job` }]
    if (runner) this.#drop(runner)
    return [204]
  }

  #sessions(method: string, set: ScaleSet, id: string | undefined, body: unknown): [number, unknown?] {
    const queue = this.#queues.get(set.id)
    if (!queue) return [404, { typeName: 'RunnerScaleSetNotFoundException', message: 'No such scale set' }]
    if (queue.session && this.#isLapsed(queue.session)) queue.session = undefined
    if (id === undefined) {
      if (queue.session)
        return [409, { typeName: 'RunnerScaleSetSessionConflictException', message: 'A session is active' }]
      const { ownerName } = body as { ownerName: string }
      queue.session = { id: randomUUID(), scaleSet: set.id, ownerName, token: randomUUID(), polledMs: Date.now() }
      return [200, this.#shownSession(queue.session, set)]
    }
    if (queue.session?.id !== id) return [404, { typeName: 'SessionNotFoundException', message: 'No such session' }]
    if (method === 'DELETE') {
      queue.session = undefined
      return [204]
    }
    queue.session.token = randomUUID()
    return [200, this.#shownSession(queue.session, set)]
  }

  #shownSession({ id, ownerName, token }: Session, set: ScaleSet): object {
    return {
      sessionId: id,
      ownerName,
      runnerScaleSet: this.#shownSet(set),
      messageQueueUrl: `${new URL(this.url).origin}/_queue/messages?set=${set.id}`,
      messageQueueAccessToken: token,
      statistics: this.#statistics(set.id),
    }
  }

  async #queue(
    { request, response }: Exchange,
    method: string,
    url: URL,
    authorization: string,
  ): Promise<[number, unknown?]> {
    const set = Number(url.searchParams.get('set'))
    const queue = this.#queues.get(set)
    const { session } = queue ?? {}
    if (!queue || !session || authorization !== `Bearer ${session.token}`)
      return [401, { typeName: 'Unauthorized', message: 'The token of the queue has ended' }]
    session.polledMs = Date.now()
    const [, , , acknowledged] = url.pathname.split('/')
    if (method === 'DELETE') {
      if (queue.message?.id === Number(acknowledged)) queue.message = undefined
      return [204]
    }
    queue.capacity = Number(request.headers['x-scalesetmaxcapacity'] ?? 0)
    this.capacities.push({ set: this.sets.get(set)?.name ?? '', capacity: queue.capacity })
    this.#assign()
    const hold = setInterval(() => {
      session.polledMs = Date.now()
    }, 100)
    const gone = new Promise<void>((resolve) => response.once('close', resolve))
    if (!queue.message && queue.news.length === 0) await Promise.race([this.#moment(queue), gone])
    clearInterval(hold)
    if (request.socket.destroyed || queue.session !== session) return [202]
    if (!queue.message && queue.news.length > 0)
      queue.message = { id: ++queue.messages, body: JSON.stringify(queue.news.splice(0, 50)) }
    if (!queue.message) return [202]
    const { id, body } = queue.message
    return [200, { messageId: id, messageType: 'RunnerScaleSetJobMessages', body, statistics: this.#statistics(set) }]
  }

  /** Resolves when there are messages, or when the poll ends. */
  async #moment({ waiting }: Queue): Promise<void> {
    let wake = (): void => undefined
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    waiting.add(wake)
    const timer = setTimeout(wake, this.#options.pollMs ?? 1_000)
    await woken
    clearTimeout(timer)
    waiting.delete(wake)
  }

  #newId(): number {
    this.#lastId += 1
    return this.#lastId
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const runner of this.runners.values()) this.#drop(runner)
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

const listed = (value: readonly unknown[]): object => ({ count: value.length, value })

/** The client reads only `exp`. */
function unsignedJwt(seconds: number): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none' })}.${part({ exp: Math.floor(Date.now() / 1_000) + seconds })}.`
}
