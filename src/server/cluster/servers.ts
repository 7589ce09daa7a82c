// Membership of the servers that share a store. Each server renews its record. It counts as dead when its record has not
// changed for longer than its lease, by the monotonic clock of the observer. Wall clocks are never compared.
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { KnownServerRecord, ServerRecord } from '../../store/records/server-records.ts'
import { changeKey, type Entry, ignoreLost, isFault } from '../../store/store.ts'

interface ServersOptions {
  readonly collections: Pick<Collections, 'servers' | 'knownServers'>
  readonly self: Pick<ServerRecord, 'id' | 'run' | 'version'>
  readonly clock: Clock
  readonly log: Log
  readonly leaseMs?: number
  readonly nowMs?: () => number
}

const defaultLeaseMs = 8_000
/** Allows for drift between monotonic clocks. */
export const graceFactor = 1.25
/** A dead server's record is removed after this many leases. By then its nodes have connected to other servers. */
const forgetLeases = 15

export const hostOf = ({ internalUrl }: KnownServerRecord): string => new URL(internalUrl).host

export class Servers {
  readonly id: string
  readonly run: string
  readonly #options: ServersOptions
  readonly #leaseMs: number
  readonly #nowMs: () => number
  /** When the record of each server last changed, by the monotonic clock. */
  readonly #changedMs = new Map<string, number>()
  readonly #listeners = new Set<() => void>()
  readonly #unsubscribe: () => void
  #own: Omit<ServerRecord, 'beat'> | undefined
  #renewedMs = Number.NEGATIVE_INFINITY
  #currentMs = Number.NEGATIVE_INFINITY
  #loop: Loop | undefined
  #alive = ''

  constructor(options: ServersOptions) {
    this.#options = options
    this.id = options.self.id
    this.run = options.self.run
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs
    this.#nowMs = options.nowMs ?? (() => performance.now())
    const { servers } = options.collections
    for (const { key } of servers.list()) this.#changedMs.set(key, this.#nowMs())
    this.#unsubscribe = servers.view.subscribe((changes) => {
      for (const change of changes) {
        const key = changeKey(change)
        if (change.type === 'put') this.#changedMs.set(key, this.#nowMs())
        else this.#changedMs.delete(key)
      }
      this.#checkAlive()
    })
  }

  /** When this server last began a write that it then saw. It has seen all writes before that. */
  get currentMs(): number {
    return this.#currentMs
  }

  /** The live servers, this one first. */
  alive(): readonly ServerRecord[] {
    return this.#options.collections.servers
      .list()
      .filter((entry) => this.#isAlive(entry))
      .map(({ value }) => value)
      .toSorted((one, other) => Number(other.id === this.id) - Number(one.id === this.id))
  }

  others(): readonly ServerRecord[] {
    return this.alive().filter(({ id }) => id !== this.id)
  }

  /** Known servers that are not live: stopped, killed, or disconnected from the store. */
  away(): readonly KnownServerRecord[] {
    return this.#options.collections.knownServers
      .list()
      .map(({ value }) => value)
      .filter(({ id }) => id !== this.id && !this.find(id))
  }

  /** Returns the server if it is live, and if it is that run of it. */
  find(id: string, run?: string): ServerRecord | undefined {
    const entry = this.#options.collections.servers.get('', id)
    if (!entry || (run !== undefined && entry.value.run !== run)) return undefined
    return this.#isAlive(entry) ? entry.value : undefined
  }

  /** Calls the listener when servers become live or dead. Returns a function that removes it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Registers this server, and keeps renewing its record. `afterRenewal` runs after every renewal but the first. */
  async start(
    addresses: Pick<ServerRecord, 'internalUrl' | 'apiUrl'>,
    afterRenewal: () => Promise<void>,
  ): Promise<void> {
    const { self, clock, log } = this.#options
    this.#own = { ...self, ...addresses, startedAt: timestamp(clock.now()), leaseMs: this.#leaseMs }
    await this.#renew()
    await this.#recordAddress()
    this.#loop = startLoop({
      everyMs: this.#leaseMs / 4,
      isFirstLater: true,
      run: async () => {
        await this.#renew()
        this.#checkAlive()
        await this.#forgetDead()
        await this.#recordAddress()
        await afterRenewal()
      },
      failed: (error) => {
        this.#checkAlive()
        if (!isFault(error, 'Unavailable')) log.error('the record of this server could not be renewed', {}, error)
      },
    })
  }

  async stop(): Promise<void> {
    await this.#loop?.stop()
    this.#unsubscribe()
    const entry = this.#options.collections.servers.get('', this.id)
    if (entry?.value.run === this.run) await this.#options.collections.servers.delete(entry).catch(() => undefined)
  }

  async #renew(): Promise<void> {
    const { servers } = this.#options.collections
    const own = this.#own
    if (!own) return
    let beganMs = this.#nowMs()
    await servers.change(servers.key('', this.id), (record) => {
      beganMs = this.#nowMs()
      const isOwn = record?.run === this.run
      if (record && !isOwn && this.#renewedMs !== Number.NEGATIVE_INFINITY)
        this.#options.log.error('another process uses the identity of this server; was its data folder copied?', {
          name: this.id,
          address: record.internalUrl,
        })
      return { ...own, beat: isOwn ? record.beat + 1 : 0 }
    })
    const nowMs = this.#nowMs()
    // A server that could not write for a lease did not see the renewals of others either, so their leases start again.
    if (nowMs - this.#renewedMs > this.#leaseMs)
      for (const key of this.#changedMs.keys()) this.#changedMs.set(key, nowMs)
    this.#renewedMs = nowMs
    this.#currentMs = beganMs
  }

  /**
   * Records the address of this server for the time after its end, when it may have content that others lack. Deletes
   * the record of an earlier server at the same address, whose data folder is lost.
   */
  async #recordAddress(): Promise<void> {
    const { servers, knownServers } = this.#options.collections
    if (!this.#own) return
    const { id, internalUrl } = this.#own
    const own = knownServers.get('', id)
    const record = { id, internalUrl }
    if (own?.value.internalUrl !== internalUrl || own.value.goneAt !== undefined)
      await (own ? knownServers.update(own, record) : knownServers.create('', id, record)).catch(ignoreLost)
    for (const entry of knownServers.list())
      if (entry.value.internalUrl === internalUrl && entry.value.id !== id && !servers.get('', entry.value.id))
        await knownServers.delete(entry).catch(ignoreLost)
  }

  #isAlive({ key, value }: Entry<ServerRecord>): boolean {
    if (value.id === this.id) return value.run === this.run
    const nowMs = this.#nowMs()
    const isBlind = this.#own !== undefined && nowMs - this.#renewedMs > this.#leaseMs
    return isBlind || nowMs - (this.#changedMs.get(key) ?? nowMs) <= value.leaseMs * graceFactor
  }

  #checkAlive(): void {
    const alive = this.alive()
      .map(({ id, run }) => `${id} ${run}`)
      .join('\n')
    if (alive === this.#alive) return
    this.#alive = alive
    for (const listener of this.#listeners) listener()
  }

  async #forgetDead(): Promise<void> {
    const { servers } = this.#options.collections
    const nowMs = this.#nowMs()
    for (const entry of servers.list()) {
      const quietMs = nowMs - (this.#changedMs.get(entry.key) ?? nowMs)
      if (entry.value.id === this.id || quietMs < forgetLeases * entry.value.leaseMs) continue
      this.#options.log.info('removed a server that no longer responds', { name: entry.value.id })
      await servers.delete(entry).catch(ignoreLost)
    }
  }
}
