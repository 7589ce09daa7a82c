// The open streams to agents, one per node. A stream carries the newest generation of each VM: a slow agent gets fewer
// messages and costs no more memory. What comes up together is one write.
import type { DesiredCache } from '../../api/images/image-cache.ts'
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'

/** Heartbeats: three may be lost before a node counts as gone. */
export const heartbeatSeconds = 12
/** An agent that was silent for this long counts as gone, whatever its connection looks like. */
const defaultSilenceMs = 40_000
/** A session is looked at this often. */
const defaultLookMs = (heartbeatSeconds * 1_000) / 2
/** Looks without a line that was sent, after which there is a ping. More than a heartbeat, whose answer says as much; agents wait for five. */
const quietLooks = 2.5
/** Of one that does not read, beside the newest of each VM. */
const maxLines = 1_000
/** Not all of them in one moment, in which nobody else would be served. */
const slices = 12

/** Where the lines of a stream go. */
interface Outlet {
  /** Not before the first `resume`. False: it is full, and nothing more is written until the next one. */
  write(lines: string): boolean
  end(): void
}

/** A stream that is open, as its connection sees it. */
interface OpenStream {
  /** A line of the connection's own. One that is not read from is ended. */
  send(line: string): void
  /** The outlet has room again. */
  resume(): void
  /** The connection is gone. */
  end(): void
}

interface Session {
  readonly node: string
  readonly outlet: Outlet
  /** By the uid of the VM: only the newest generation matters. */
  vms: Map<string, DesiredVm>
  readonly lines: string[]
  cache: DesiredCache | undefined
  isFull: boolean
  isDue: boolean
  seenMs: number
  lookedMs: number
  sentMs: number
  isClosed: boolean
}

/** `silentMs`: it was ended because nothing came from the node for so long. */
type FleetListener = (node: string, isOpen: boolean, silentMs?: number) => void

export class Fleet {
  readonly #sessions = new Map<string, Session>()
  /** The one that was looked at longest ago comes first. */
  readonly #byLook = new Set<Session>()
  /** Those with something to write. */
  #due: Session[] = []
  readonly #listeners = new Set<FleetListener>()
  readonly #ticker: NodeJS.Timeout
  readonly #silenceMs: number
  readonly #lookMs: number

  constructor(silenceMs = defaultSilenceMs, lookMs = Math.min(defaultLookMs, silenceMs)) {
    this.#silenceMs = silenceMs
    this.#lookMs = lookMs
    this.#ticker = setInterval(() => this.#tick(), lookMs / slices).unref()
  }

  isOpen(node: string): boolean {
    return this.#sessions.has(node)
  }

  /** Called when a stream opens or closes. */
  subscribe(listener: FleetListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The node's agent said something. */
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

  /** Sends a message; false when the node has no stream here. */
  tell(node: string, message: AgentMessage): boolean {
    const session = this.#sessions.get(node)
    if (!session || session.lines.length >= maxLines) return false
    this.#send(session, lineOf(message))
    return true
  }

  /** Ends the stream of a node, if there is one. */
  drop(node: string): void {
    const session = this.#sessions.get(node)
    if (session) this.#end(session)
  }

  dropAll(): void {
    for (const session of this.#sessions.values()) this.#end(session)
  }

  close(): void {
    clearInterval(this.#ticker)
    this.dropAll()
  }

  /** One line per message, until the agent goes or another stream of the same node opens. */
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
      lookedMs: nowMs,
      sentMs: nowMs,
      isClosed: false,
    }
    this.#sessions.set(node, session)
    this.#byLook.add(session)
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
    if (this.#due.push(session) === 1) queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    const due = this.#due
    this.#due = []
    for (const session of due) {
      session.isDue = false
      if (!session.isFull && !session.isClosed) this.#write(session)
    }
  }

  #write(session: Session): void {
    const { lines, vms, outlet } = session
    for (const vm of vms.values()) lines.push(lineOf({ type: 'VM', vm }))
    if (vms.size > 0) session.vms = new Map()
    if (session.cache) lines.push(lineOf({ type: 'CACHE', cache: session.cache }))
    session.cache = undefined
    if (lines.length === 0) return
    session.sentMs = performance.now()
    const text = lines.length === 1 ? (lines[0] as string) : lines.join('')
    lines.length = 0
    session.isFull = !outlet.write(text)
  }

  #end(session: Session, silentMs?: number): void {
    if (session.isClosed) return
    session.isClosed = true
    this.#byLook.delete(session)
    session.outlet.end()
    if (this.#sessions.get(session.node) !== session) return
    this.#sessions.delete(session.node)
    this.#announce(session.node, false, silentMs)
  }

  #announce(node: string, isOpen: boolean, silentMs?: number): void {
    for (const listener of this.#listeners) listener(node, isOpen, silentMs)
  }

  #tick(): void {
    const nowMs = performance.now()
    for (const session of this.#byLook) {
      if (nowMs - session.lookedMs < this.#lookMs) return
      session.lookedMs = nowMs
      this.#byLook.delete(session)
      const silentMs = nowMs - session.seenMs
      if (silentMs > this.#silenceMs) {
        this.#end(session, silentMs)
        continue
      }
      this.#byLook.add(session)
      const isQuiet = nowMs - session.sentMs >= quietLooks * this.#lookMs
      if (isQuiet && session.lines.length === 0) this.#send(session, ping)
    }
  }
}

const lineOf = (message: AgentMessage): string => `${JSON.stringify(message)}\n`
const ping = lineOf({ type: 'PING' })
