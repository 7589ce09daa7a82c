// A stand-in for the server in tests of the agent: real HTTP and WebSockets, the agent's operations, all in memory.
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws'
import { ApiError } from '../../../src/api/errors.ts'
import type { AgentMessage, DesiredVm, VmReport } from '../../../src/api/nodes/agent.ts'
import { type AgentAnswer, type AgentCall, connectAgent } from '../../../src/api/nodes/agent-connection.ts'
import type { NodeReport } from '../../../src/api/nodes/node-report.ts'
import { revisionHeader } from '../../../src/api/revision.ts'
import { chunksOf, decodeManifest, digestOf } from '../../../src/images/format/manifest.ts'
import { desiredVm } from './desired-vm.ts'

type DialTo = Extract<AgentMessage, { type: 'DIAL' }>['to']

const prefix = '/api/v1/agent'
const timeoutMs = 60_000

interface Backup {
  readonly desired: ReadonlyMap<string, DesiredVm>
  readonly store: { readonly uid: string; readonly revision: number }
}

const nothing: Backup = { desired: new Map(), store: { uid: 'other', revision: 1 } }

interface Captured {
  readonly id: string
  readonly content?: string | undefined
  readonly problem?: string | undefined
}

export class AgentServer implements AsyncDisposable {
  readonly joinToken = 'join-token-canary'
  readonly desired = new Map<string, DesiredVm>()
  /** The newest report of each VM, and all reports in order. */
  readonly vms = new Map<string, VmReport>()
  readonly history: VmReport[] = []
  readonly nodes: NodeReport[] = []
  readonly joins: string[] = []
  readonly requests: string[] = []
  /** Answered as unknown. */
  readonly unknown = new Set<string>()
  /** It sends no heartbeats: three would have to be missed before it counts as silent. */
  heartbeatSeconds = 60
  /** The addresses of servers that it tells agents. */
  servers: readonly string[] | undefined
  /** The id of its data, and the revision, which every change increments. */
  store = { uid: 'store', revision: 1 }
  /** Accepts calls on a kept connection without answering. */
  isMute = false
  refuseReports = false
  tokensIssued = 0
  /** The revision that the agent reports with each connection. */
  readonly revisions: number[] = []
  /** The number of reports that came by HTTP instead of the connection. */
  reportsByHttp = 0
  /** Content that it has, and the results of captures. */
  readonly blobs = new Map<string, Buffer>()
  readonly captured: Captured[] = []
  readonly progress: { id: string; percent: number; bytes: number; phase?: string }[] = []
  putBytes = 0
  givenBytes = 0
  refuseBlobs: ApiError | undefined
  streamsOpened = 0
  readonly #keys = new Map<string, string>()
  #members = 0
  readonly #tokens = new Map<string, string>()
  readonly #streams = new Set<WebSocket>()
  readonly #tunnels = new Map<string, (tunnel: Duplex) => void>()
  readonly #events = new EventEmitter().setMaxListeners(0)
  readonly #sockets = new Set<Socket>()
  #isAway = false
  #server: Server | undefined
  #port = 0

  static async start(): Promise<AgentServer> {
    const server = new AgentServer()
    await server.#listen()
    return server
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Sends a desired state to the agent; the generation increases by itself. */
  want(vm: Partial<DesiredVm> & { readonly uid: string }): DesiredVm {
    const before = this.desired.get(vm.uid)
    const { growth: _, ...kept } = before ?? desiredVm(vm.uid)
    const revision = String(++this.store.revision)
    const desired: DesiredVm = { ...kept, revision, ...vm, generation: vm.generation ?? (before?.generation ?? 0) + 1 }
    // Credentials are sent once.
    const { growth: __, ...stored } = desired
    this.desired.set(vm.uid, stored)
    this.send({ type: 'VM', vm: desired })
    return desired
  }

  send(message: AgentMessage): void {
    for (const stream of this.#streams) stream.send(`${JSON.stringify(message)}\n`)
  }

  /** Resolves with the last or next report of a VM that matches. */
  until(uid: string, isRight: (report: VmReport) => boolean): Promise<VmReport> {
    const last = this.vms.get(uid)
    return last && isRight(last) ? Promise.resolve(last) : this.next(uid, isRight)
  }

  next(uid: string, isRight: (report: VmReport) => boolean = () => true): Promise<VmReport> {
    const last = () => `no such report of ${uid}; the last one is ${JSON.stringify(this.vms.get(uid))}`
    return this.#when('report', (report: VmReport) => report.uid === uid && isRight(report), last)
  }

  /** Resolves with the report that completes this generation, successful or not. */
  fulfilled({ uid, generation }: DesiredVm): Promise<VmReport> {
    return this.until(uid, (report) => report.generation >= generation && report.operation === undefined)
  }

  nextNode(isRight: (report: NodeReport) => boolean = () => true): Promise<NodeReport> {
    return this.#when('node', isRight, () => `no such report; the last one is ${JSON.stringify(this.nodes.at(-1))}`)
  }

  /** The next stream that is opened. */
  stream(): Promise<unknown> {
    return this.#when(
      'stream',
      () => true,
      () => 'no stream was opened',
    )
  }

  /** A client wants to reach something on the node. */
  dial(uid: string, to: DialTo, more: { follow?: boolean; tail?: number } = {}): Promise<Duplex> {
    const tunnel = randomBytes(8).toString('hex')
    const { promise, resolve } = Promise.withResolvers<Duplex>()
    this.#tunnels.set(tunnel, resolve)
    this.send({ type: 'DIAL', tunnel, uid, to, ...more })
    return promise
  }

  /** Copies the data, as a backup does. */
  backUp(): Backup {
    return { desired: new Map(this.desired), store: { ...this.store } }
  }

  /** Replaces the data; a connected agent has to connect again. */
  async restore({ desired, store }: Backup = nothing, isConnected = true): Promise<void> {
    this.desired.clear()
    for (const [uid, vm] of desired) this.desired.set(uid, vm)
    this.store = { ...store }
    if (isConnected) await this.reconnect()
  }

  /** Resolves when the agent has opened a new stream. */
  async reconnect(): Promise<unknown> {
    const stream = this.stream()
    this.dropStreams()
    return stream
  }

  forgetTokens(): void {
    this.#tokens.clear()
  }

  forgetNode(name: string): void {
    this.#keys.delete(name)
    this.forgetTokens()
  }

  dropStreams(): void {
    for (const stream of this.#streams) stream.terminate()
  }

  /** Disconnects all clients and accepts none. The port stays reserved. */
  goAway(): void {
    this.#isAway = true
    for (const socket of this.#sockets) socket.destroy()
  }

  comeBack(): void {
    this.#isAway = false
  }

  async #listen(): Promise<void> {
    // A killed client receives no answer.
    const server = createServer(
      (request, response) => void this.#serve(request, response).catch(() => response.destroy()),
    )
    server.on('connection', (socket) => {
      if (this.#isAway) return socket.destroy()
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    const sockets = new WebSocketServer({ noServer: true })
    server.on('upgrade', (request, socket, head) => {
      if (!this.#nodeOf(request)) {
        const response = new ServerResponse(request)
        response.assignSocket(socket as Socket)
        response.once('finish', () => socket.end())
        return void this.#serve(request, response)
      }
      if (request.url === connectAgent.path) {
        this.revisions.push(Number(request.headers[revisionHeader]))
        return sockets.handleUpgrade(request, socket, head, (ws) => this.#keep(ws))
      }
      const open = this.#tunnels.get(request.url?.split('/').at(-1) ?? '')
      if (!open) return socket.destroy()
      sockets.handleUpgrade(request, socket, head, (ws) => open(createWebSocketStream(ws)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.goAway()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  #when<T>(event: string, isRight: (value: T) => boolean, failure: () => string): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const timer = setTimeout(() => reject(new Error(failure())), timeoutMs)
    const listen = (value: T): void => {
      if (isRight(value)) resolve(value)
    }
    this.#events.on(event, listen)
    return promise.finally(() => {
      clearTimeout(timer)
      this.#events.off(event, listen)
    })
  }

  #nodeOf({ headers }: IncomingMessage): string | undefined {
    return this.#tokens.get(headers.authorization?.replace('Bearer ', '') ?? '')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const route = `${request.method} ${request.url?.slice(prefix.length)}`
    this.requests.push(route)
    const answer = (status: number, body: unknown): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json', [revisionHeader]: '1' })
        .end(JSON.stringify(body))
    try {
      if (route.startsWith('PUT /blobs/')) return answer(201, this.#put(route, Buffer.concat(chunks)))
      const body = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString('utf8'))
      if (route === 'POST /join') return answer(201, this.#join(body))
      if (route === 'POST /token') return answer(201, this.#issue(body))
      // As a server that is older than the agent.
      if (route === 'POST /key') throw new ApiError('NotFound', `${route} is not here`)
      if (!this.#nodeOf(request)) throw new ApiError('Unauthorized', 'this token is not good')
      if (route.startsWith('GET /blobs/')) return this.#give(route, response)
      if (route === 'GET /connection') throw new ApiError('BadRequest', 'This operation requires a WebSocket')
      if (route === 'POST /node') return answer(200, this.#node(body))
      if (route === 'POST /vms') this.reportsByHttp++
      if (route === 'POST /vms') return answer(200, this.#report(body))
      if (route === 'POST /blobs/missing') return answer(200, { missing: this.#lacking(body.digests) })
      if (route.startsWith('POST /captures/')) return answer(200, this.#capture(route, body))
      throw new ApiError('NotFound', `${route} is not here`)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      answer(error.code, error.toStatus('request-1'))
    }
  }

  #put(route: string, content: Buffer): unknown {
    const digest = route.split('/').at(-1) ?? ''
    if (this.refuseBlobs) throw this.refuseBlobs
    if (digestOf(content) !== decodeURIComponent(digest)) throw new ApiError('BadRequest', 'it is something else')
    this.blobs.set(decodeURIComponent(digest), content)
    this.putBytes += content.length
    return { digest }
  }

  #give(route: string, response: ServerResponse): void {
    const content = this.blobs.get(decodeURIComponent(route.split('/').at(-1) ?? ''))
    if (!content) throw new ApiError('NotFound', 'blobs not found')
    this.givenBytes += content.length
    response.writeHead(200, { 'content-length': content.length }).end(content)
  }

  #lacking(digests: readonly string[]): string[] {
    return digests.filter((digest) => !this.blobs.has(digest))
  }

  #capture(
    route: string,
    body: { content?: string; percent?: number; bytes?: number; phase?: string; problem?: string },
  ): unknown {
    const [, , id = '', isProgress] = route.split('/')
    const vm = [...this.desired.values()].find(({ captures }) => captures?.some((each) => each.id === id))
    if (!vm) throw new ApiError('NotFound', `captures "${id}" not found`)
    if (isProgress && body.problem === undefined) {
      this.progress.push({
        id,
        percent: body.percent ?? 0,
        bytes: body.bytes ?? 0,
        ...(body.phase && { phase: body.phase }),
      })
      return {}
    }
    if (!isProgress) {
      const content = body.content ?? ''
      const bytes = this.blobs.get(content)
      const parts = bytes ? [...chunksOf(decodeManifest(bytes, content))].map(({ digest }) => digest) : []
      const missing = this.#lacking([content, ...parts])
      if (missing.length > 0) return { missing }
    }
    const captures = vm.captures?.filter((each) => each.id !== id) ?? []
    this.desired.set(vm.uid, { ...vm, captures })
    const outcome = { id, content: body.content, problem: body.problem }
    this.captured.push(outcome)
    this.#events.emit('captured', outcome)
    return isProgress ? {} : { missing: [] }
  }

  /** The result of a capture. */
  async outcome(id: string): Promise<Captured> {
    const isRight = (each: Captured): boolean => each.id === id
    return this.captured.find(isRight) ?? this.#when('captured', isRight, () => `nothing came of ${id}`)
  }

  #join({ token, name, publicKey }: { token: string; name: string; publicKey: string }): unknown {
    if (token !== this.joinToken) throw new ApiError('Unauthorized', 'this join token is not good')
    this.joins.push(name)
    if (!this.#keys.has(name)) this.#members++
    this.#keys.set(name, publicKey)
    return { name, namespace: 'svc-default', uid: `${name}-${this.#members}` }
  }

  #issue({ name, at, signature }: { name: string; at: string; signature: string }): unknown {
    const der = Buffer.from(this.#keys.get(name) ?? '', 'base64')
    const isGood =
      der.length > 0 &&
      verify(
        null,
        Buffer.from(`svc3-agent\n${name}\n${at}`),
        createPublicKey({ key: der, format: 'der', type: 'spki' }),
        Buffer.from(signature, 'base64'),
      )
    if (!isGood) throw new ApiError('Unauthorized', `the node "${name}" is not known`)
    this.tokensIssued++
    const token = randomBytes(12).toString('hex')
    this.#tokens.set(token, name)
    return { token, expiresAt: new Date(Date.now() + 3_600_000).toISOString() }
  }

  #keep(ws: WebSocket): void {
    this.requests.push('GET /connection')
    ws.on('close', () => this.#streams.delete(ws))
    ws.on('error', () => undefined)
    ws.on('message', (message) => {
      for (const line of String(message).split('\n')) {
        const answer = this.#answer(JSON.parse(line))
        if (!this.isMute) ws.send(JSON.stringify(answer))
      }
    })
    this.#streams.add(ws)
    ws.send(`${JSON.stringify(this.#hello())}\n`)
    this.streamsOpened++
    this.#events.emit('stream')
  }

  #answer({ id, operation, body }: AgentCall): AgentAnswer {
    const route = { reportNode: 'POST /node', reportVms: 'POST /vms' }[operation] ?? operation
    this.requests.push(route)
    try {
      if (operation === 'reportNode') return { type: 'ANSWER', id, status: 200, body: this.#node(body as never) }
      if (operation === 'reportVms') return { type: 'ANSWER', id, status: 200, body: this.#report(body as never) }
      throw new ApiError('NotFound', `${operation} is not here`)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { type: 'ANSWER', id, status: error.code, body: error.toStatus('request-1') }
    }
  }

  #hello(): unknown {
    const { heartbeatSeconds, store } = this
    const vms = [...this.desired.values()]
    const place = { uid: store.uid, revision: String(store.revision), eras: [] }
    const servers = this.servers && { servers: [...this.servers] }
    const held = { vms, kept: [], store: place, cache: { images: [], drops: [] } }
    return {
      type: 'HELLO',
      ...held,
      heartbeatSeconds,
      spreadMs: 0,
      ...servers,
    } satisfies AgentMessage
  }

  #node(report: NodeReport): unknown {
    this.nodes.push(report)
    this.#events.emit('node', report)
    return { name: 'node', namespace: 'svc-default' }
  }

  #report({ vms }: { vms: VmReport[] }): unknown {
    if (this.refuseReports) throw new ApiError('ServiceUnavailable', 'not now')
    for (const report of vms) {
      this.history.push(report)
      this.vms.set(report.uid, report)
      this.#events.emit('report', report)
    }
    return { unknown: vms.map(({ uid }) => uid).filter((uid) => this.unknown.has(uid)) }
  }
}
