// The open streams to agents, one per node. A stream carries the newest generation of each VM: a slow agent gets fewer
// messages and costs no more memory.

import type { DesiredCache } from '../../api/images/image-cache.ts'
import type { AgentMessage, DesiredVm } from '../../api/nodes/agent.ts'

/** Heartbeats: three may be lost before a node counts as gone. */
export const heartbeatSeconds = 12
/** An agent that was silent for this long counts as gone, whatever its connection looks like. */
const defaultSilenceMs = 40_000
/** A session is looked at this often, and gets a ping every second time: agents wait for two and a half heartbeats. */
const defaultLookMs = (heartbeatSeconds * 1_000) / 2
/** Not all of them in one moment, in which nobody else would be served. */
const slices = 12

interface Session {
  readonly node: string
  /** By the uid of the VM: only the newest generation matters. */
  readonly vms: Map<string, DesiredVm>
  readonly others: AgentMessage[]
  cache: DesiredCache | undefined
  seenMs: number
  lookedMs: number
  /** Something was sent since the last look. */
  isFresh: boolean
  isClosed: boolean
  wake: () => void
}

/** `isSilent`: it was ended because nothing came from the node. */
type FleetListener = (node: string, isOpen: boolean, isSilent: boolean) => void

export class Fleet {
  readonly #sessions = new Map<string, Session>()
  /** The one that was looked at longest ago comes first. */
  readonly #byLook = new Set<Session>()
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
    session?.vms.set(vm.uid, vm)
    session?.wake()
  }

  sendCache(node: string, cache: DesiredCache): void {
    const session = this.#sessions.get(node)
    if (!session) return
    session.cache = cache
    session.wake()
  }

  /** Sends a message; false when the node has no stream here. */
  tell(node: string, message: AgentMessage): boolean {
    const session = this.#sessions.get(node)
    if (!session || session.others.length >= 1_000) return false
    session.others.push(message)
    session.wake()
    return true
  }

  /** Ends the stream of a node, if there is one. */
  drop(node: string): void {
    const session = this.#sessions.get(node)
    if (session) this.#end(session)
  }

  close(): void {
    clearInterval(this.#ticker)
    for (const session of this.#sessions.values()) this.#end(session)
  }

  /** One line per message, until the agent goes, another stream of the same node opens, or `signal` aborts. */
  async *open(node: string, hello: () => AgentMessage, signal: AbortSignal): AsyncGenerator<string> {
    this.drop(node)
    const session: Session = {
      node,
      vms: new Map(),
      others: [hello()],
      cache: undefined,
      seenMs: performance.now(),
      lookedMs: performance.now(),
      isFresh: true,
      isClosed: false,
      wake: () => undefined,
    }
    this.#sessions.set(node, session)
    this.#byLook.add(session)
    this.#announce(node, true)
    const end = (): void => this.#end(session)
    signal.addEventListener('abort', end, { once: true })
    try {
      while (!session.isClosed && !signal.aborted) {
        const lines = session.others.splice(0).map(lineOf)
        for (const vm of session.vms.values()) lines.push(lineOf({ type: 'VM', vm }))
        session.vms.clear()
        if (session.cache) lines.push(lineOf({ type: 'CACHE', cache: session.cache }))
        session.cache = undefined
        session.isFresh ||= lines.length > 0
        if (lines.length > 0) yield lines.join('')
        else
          await new Promise<void>((resolve) => {
            session.wake = resolve
          })
        session.wake = () => undefined
      }
    } finally {
      signal.removeEventListener('abort', end)
      this.#end(session)
    }
  }

  #end(session: Session, isSilent = false): void {
    if (session.isClosed) return
    session.isClosed = true
    this.#byLook.delete(session)
    session.wake()
    if (this.#sessions.get(session.node) !== session) return
    this.#sessions.delete(session.node)
    this.#announce(session.node, false, isSilent)
  }

  #announce(node: string, isOpen: boolean, isSilent = false): void {
    for (const listener of this.#listeners) listener(node, isOpen, isSilent)
  }

  #tick(): void {
    const nowMs = performance.now()
    for (const session of this.#byLook) {
      if (nowMs - session.lookedMs < this.#lookMs) return
      session.lookedMs = nowMs
      this.#byLook.delete(session)
      if (nowMs - session.seenMs > this.#silenceMs) {
        this.#end(session, true)
        continue
      }
      this.#byLook.add(session)
      if (session.isFresh) session.isFresh = false
      else if (session.others.length === 0) this.tell(session.node, { type: 'PING' })
    }
  }
}

const lineOf = (message: AgentMessage): string => `${JSON.stringify(message)}\n`
