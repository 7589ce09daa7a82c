// The watch on etcd that feeds the store. It is resumed after failures, at other members, and after compaction.
import { setTimeout as sleep } from 'node:timers/promises'
import type { EtcdClient } from './client.ts'
import type { EtcdEvent, KeyRange } from './protocol.ts'
import { type Deliver, readWatch } from './watch.ts'

interface FollowerOptions {
  readonly client: EtcdClient
  readonly range: KeyRange
  /** Changes after this revision are followed. */
  readonly revision: number
  readonly deliver: Deliver
  /** Called if changes up to `revision` were compacted before they were read. They are not delivered. */
  readonly skipped: (revision: number) => void
  /** The newest revision, to continue from after compaction. */
  readonly newest: () => Promise<number>
}

const minPauseMs = 20
const maxPauseMs = 1_000

export class Follower {
  readonly #options: FollowerOptions
  readonly #stop = new AbortController()
  readonly #waiters = new Set<{ readonly revision: number; readonly resolve: () => void }>()
  readonly #running: Promise<void>
  #revision: number
  #trouble: string | undefined

  constructor(options: FollowerOptions) {
    this.#options = options
    this.#revision = options.revision
    this.#running = this.#run(this.#stop.signal)
  }

  get revision(): number {
    return this.#revision
  }

  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Resolves to whether the revision was reached in time. */
  reached(revision: number, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (this.#revision >= revision) return Promise.resolve(true)
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#waiters.delete(waiter)
        for (const end of [signal, this.#stop.signal]) end.removeEventListener('abort', done)
        resolve(this.#revision >= revision)
      }
      const timer = setTimeout(done, timeoutMs)
      const waiter = { revision, resolve: done }
      this.#waiters.add(waiter)
      for (const end of [signal, this.#stop.signal]) end.addEventListener('abort', done)
      if (signal.aborted || this.#stop.signal.aborted) done()
    })
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { client, range } = this.#options
    let failures = 0
    const receive: Deliver = (events, revision) => {
      this.#trouble = undefined
      failures = 0
      // A member that lags behind may report a progress that is older.
      if (revision <= this.#revision) return
      // Some changes may have been learned from another server.
      const isNew = (event: EtcdEvent): boolean => event.kv.modRevision > this.#revision
      this.#options.deliver(events.every(isNew) ? events : events.filter(isNew), revision)
      this.advance(revision)
    }
    for (; !signal.aborted; failures++) {
      const end = await readWatch(client, range, this.#revision + 1, signal, receive)
      if (end.kind === 'compacted') await this.#skip()
      else if (end.kind === 'failed') this.#trouble = end.text
      const pauseMs = Math.min(minPauseMs * 2 ** failures, maxPauseMs) * (0.5 + Math.random() / 2)
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #skip(): Promise<void> {
    try {
      const revision = await this.#options.newest()
      this.#options.skipped(revision)
      this.advance(revision)
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error)
    }
  }

  /** Records that every change up to `revision` was delivered, by this watch or by another server. */
  advance(revision: number): void {
    this.#revision = revision
    for (const waiter of this.#waiters) if (waiter.revision <= revision) waiter.resolve()
  }
}
