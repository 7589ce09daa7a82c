// The open streams to agents, one per node. A stream carries the newest generation of each VM, so a slow agent gets fewer
// messages and costs no more memory. Messages of one turn of the event loop are one write.
import type { DesiredCache } from '../../api/images/image-cache.ts'
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'

export const heartbeatSeconds = 12
/** A stream ends when its agent was silent for this long. By then three heartbeats are missing. */
const defaultSilenceMs = 40_000
const defaultCheckMs = (heartbeatSeconds * 1_000) / 2
/** A stream that was quiet for this many checks gets a ping. An agent ends a stream that was quiet for twice as long. */
const quietChecks = 2.5
/** The limit of unsent lines, besides the newest generation of each VM. */
const maxLines = 1_000

interface Outlet {
  /** Called after the first `resume`. After false, it is not called again until the next `resume`. */
  write(lines: string): boolean
  end(): void
}

interface OpenStream {
  /** Sends a line of the connection itself. Ends the stream if the agent reads too slowly. */
  send(line: string): void
  /** Starts writing to the outlet, or continues when it has room again. */
  resume(): void
  /** Ends the stream, for example when its connection has closed. */
  end(): void
}

interface Session {
  readonly node: string
  readonly outlet: Outlet
  readonly vms: Map<string, DesiredVm>
  readonly lines: string[]
  cache: DesiredCache | undefined
  isFull: boolean
  isDue: boolean
  seenMs: number
  sentMs: number
  isClosed: boolean
  readonly timer: NodeJS.Timeout
}

/** `silentMs` is set if the stream was ended because the agent was silent for that time. */
type FleetListener = (node: string, isOpen: boolean, silentMs?: number) => void

export class Fleet {
  readonly #sessions = new Map<string, Session>()
  readonly #listeners = new Set<FleetListener>()
  readonly #silenceMs: number
  readonly #checkMs: number

  constructor(silenceMs = defaultSilenceMs, checkMs = Math.min(defaultCheckMs, silenceMs)) {
    this.#silenceMs = silenceMs
    this.#checkMs = checkMs
  }

  isOpen(node: string): boolean {
    return this.#sessions.has(node)
  }

  subscribe(listener: FleetListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Notes that the node's agent has sent something. */
  seen(node: string): void {
    const session = this.#sessions.get(node)
    if (session) session.seenMs = performance.now()
  }

  sendVm(node: string, vm: DesiredVm): void {
    const session = this.#sessions.get(node)
    if (!session) return
    session.vms.set(vm.uid, vm)
    this.#wake(session)
  }

  sendCache(node: string, cache: DesiredCache): void {
    const session = this.#sessions.get(node)
    if (!session) return
    session.cache = cache
    this.#wake(session)
  }

  /** Sends a message. Returns false if the node has no stream here, or too many unsent lines. */
  tell(node: string, message: AgentMessage): boolean {
    const session = this.#sessions.get(node)
    if (!session || session.lines.length >= maxLines) return false
    this.#send(session, lineOf(message))
    return true
  }

  drop(node: string): void {
    const session = this.#sessions.get(node)
    if (session) this.#end(session)
  }

  dropAll(): void {
    for (const session of this.#sessions.values()) this.#end(session)
  }

  /** Opens a stream of one line per message, which ends any other stream of the node. */
  open(node: string, hello: () => AgentMessage, outlet: Outlet): OpenStream {
    const first = lineOf(hello())
    this.drop(node)
    const nowMs = performance.now()
    const session: Session = {
      node,
      outlet,
      vms: new Map(),
      lines: [first],
      cache: undefined,
      isFull: true,
      isDue: false,
      seenMs: nowMs,
      sentMs: nowMs,
      isClosed: false,
      timer: setInterval(() => this.#check(session), this.#checkMs).unref(),
    }
    this.#sessions.set(node, session)
    this.#announce(node, true)
    return {
      send: (line) => {
        if (session.lines.length < maxLines) this.#send(session, line)
        else this.#end(session)
      },
      resume: () => {
        session.isFull = false
        this.#wake(session)
      },
      end: () => this.#end(session),
    }
  }

  #send(session: Session, line: string): void {
    session.lines.push(line)
    this.#wake(session)
  }

  #wake(session: Session): void {
    if (session.isDue) return
    session.isDue = true
    queueMicrotask(() => {
      session.isDue = false
      if (!session.isFull && !session.isClosed) this.#write(session)
    })
  }

  #write(session: Session): void {
    const { lines, vms, outlet } = session
    for (const vm of vms.values()) lines.push(lineOf({ type: 'VM', vm }))
    vms.clear()
    if (session.cache) lines.push(lineOf({ type: 'CACHE', cache: session.cache }))
    session.cache = undefined
    if (lines.length === 0) return
    session.sentMs = performance.now()
    session.isFull = !outlet.write(lines.splice(0).join(''))
  }

  #end(session: Session, silentMs?: number): void {
    if (session.isClosed) return
    session.isClosed = true
    clearInterval(session.timer)
    session.outlet.end()
    if (this.#sessions.get(session.node) !== session) return
    this.#sessions.delete(session.node)
    this.#announce(session.node, false, silentMs)
  }

  #announce(node: string, isOpen: boolean, silentMs?: number): void {
    for (const listener of this.#listeners) listener(node, isOpen, silentMs)
  }

  #check(session: Session): void {
    const nowMs = performance.now()
    const silentMs = nowMs - session.seenMs
    const isQuiet = nowMs - session.sentMs >= quietChecks * this.#checkMs
    if (silentMs > this.#silenceMs) this.#end(session, silentMs)
    else if (isQuiet && session.lines.length === 0) this.#send(session, ping)
  }
}

const lineOf = (message: AgentMessage): string => `${JSON.stringify(message)}\n`
const ping = lineOf({ type: 'PING' })
