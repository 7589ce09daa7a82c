// Which nodes are connected, and to which server. Records are written only when a stream opens or ends. In between, the
// lease of the server covers all of them, so that idle nodes cause no writes.
import { randomUUID } from 'node:crypto'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { createSlices } from '../../platform/event-loop.ts'
import type { Log } from '../../platform/log.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { caughtUp } from '../../store/records/caught-up.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { PresenceRecord, ServerRecord } from '../../store/records/server-records.ts'
import { type Entry, ignoreLost, type Rev, type Store } from '../../store/store.ts'
import type { Servers } from '../cluster/servers.ts'
import type { Fleet } from './fleet.ts'

export interface PresenceTracker {
  isOpen(node: string): boolean
  /** The other server that the node is connected to. Undefined if it is connected to this one, or to none. */
  holderOf(node: string): ServerRecord | undefined
  /** Calls the listener when a stream opens or ends on any server. Without a node, any node may be concerned. */
  subscribe(listener: PresenceListener): () => void
  /** Claims the node for this server, before its stream opens. */
  claim(node: string): Promise<Claim>
}

type PresenceListener = (node?: string) => void

interface Claim {
  /** The state sent to the node includes everything up to this revision, if defined. */
  readonly rev: Rev | undefined
  /** Whether no newer stream of the node has been claimed. */
  isCurrent(): boolean
}

/** For a server that does not share its store. */
export const ownPresence = (fleet: Fleet): PresenceTracker => ({
  isOpen: (node) => fleet.isOpen(node),
  holderOf: () => undefined,
  subscribe: (listener) => fleet.subscribe(listener),
  claim: async () => ({ rev: undefined, isCurrent: () => true }),
})

interface SharedPresenceOptions {
  readonly store: Pick<Store, 'reached'>
  readonly collections: Collections
  readonly fleet: Fleet
  readonly servers: Servers
  readonly clock: Clock
  readonly log: Log
}

const timeoutMs = 10_000
/** A claim whose stream has not opened within this time is dropped. */
const claimMs = 30_000
const parallelRemovals = 64
/** Limits a round, because the lease is not renewed during it. Most nodes of a killed server rewrite their records. */
const maxRemovedPerRound = 512

export class SharedPresence implements PresenceTracker {
  readonly #options: SharedPresenceOptions
  readonly #open = new Map<string, string>()
  readonly #claims = new Map<string, { readonly session: string; readonly atMs: number }>()
  readonly #listeners = new Set<PresenceListener>()
  readonly #unsubscribes: readonly (() => void)[]

  constructor(options: SharedPresenceOptions) {
    const { collections, fleet, servers } = options
    this.#options = options
    const announce = (node?: string): void => {
      for (const listener of this.#listeners) listener(node)
    }
    this.#unsubscribes = [
      fleet.subscribe((node, isOpen) => {
        const claim = this.#claims.get(node)
        if (!isOpen) this.#ended(node)
        else if (claim) this.#open.set(node, claim.session)
        if (isOpen) this.#claims.delete(node)
        announce(node)
      }),
      collections.presence.view.subscribe((changes) => {
        // The node has connected to another server, so it no longer reads from this one.
        for (const change of changes) {
          const { node, server } = change.type === 'put' ? change.entry.value : change.previous.value
          if (change.type === 'put' && this.#open.has(node) && server !== servers.id) fleet.drop(node)
          announce(node)
        }
      }),
      servers.subscribe(() => announce()),
    ]
  }

  isOpen(node: string): boolean {
    return this.#options.fleet.isOpen(node) || this.holderOf(node) !== undefined
  }

  holderOf(node: string): ServerRecord | undefined {
    const { collections, servers } = this.#options
    const record = collections.presence.get('', node)?.value
    return record === undefined || record.server === servers.id ? undefined : servers.find(record.server, record.run)
  }

  subscribe(listener: PresenceListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async claim(node: string): Promise<Claim> {
    const { collections, servers, clock } = this.#options
    const { presence } = collections
    const session = randomUUID()
    this.#claims.set(node, { session, atMs: performance.now() })
    const record: PresenceRecord = {
      node,
      server: servers.id,
      run: servers.run,
      session,
      since: timestamp(clock.now()),
    }
    const { rev } = await presence.change(presence.key('', node), () => record)
    // A node deletes VMs that it is not sent. So its state must be as new as any state that a server has sent it.
    await this.#caughtUp(rev)
    // The node may also have connected to this server again.
    const isLast = (): boolean => this.#claims.get(node)?.session === session
    return { rev, isCurrent: () => isLast() && presence.get('', node)?.value.session === session }
  }

  /** Waits until the views of what is sent to nodes have everything up to `rev`. */
  #caughtUp(rev: Rev): Promise<void> {
    const { store, collections } = this.#options
    const { vms, nodes, images, isos, cluster, vmSecrets } = collections
    const views = [vms, nodes, images, isos, cluster, vmSecrets].map(({ view }) => view)
    return caughtUp(store, views, rev, AbortSignal.timeout(timeoutMs))
  }

  /** Removes at most `max` records of streams that ended while the store was unavailable, and of removed servers. */
  async settle(max = maxRemovedPerRound): Promise<void> {
    const { collections, servers } = this.#options
    for (const [node, { atMs }] of this.#claims) if (performance.now() - atMs > claimMs) this.#claims.delete(node)
    const isOver = ({ value }: Entry<PresenceRecord>): boolean =>
      value.server === servers.id ? !this.#has(value) : !collections.servers.get('', value.server)
    const found: Entry<PresenceRecord>[] = []
    const nextSlice = createSlices()
    for (const entry of collections.presence.each()) {
      if (isOver(entry) && found.push(entry) >= max) break
      await nextSlice()
    }
    await forEachParallel(found, parallelRemovals, async (entry) => {
      // The node may have reconnected since.
      if (isOver(entry)) await this.#remove(entry)
    })
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe()
  }

  /** Removes the records of this server's streams, so that other servers know at once. */
  async leave(): Promise<void> {
    this.#open.clear()
    this.#claims.clear()
    await this.settle(Number.POSITIVE_INFINITY).catch(() => undefined)
  }

  #has({ node, run, session }: PresenceRecord): boolean {
    const isOwn = this.#open.get(node) === session || this.#claims.get(node)?.session === session
    return isOwn && run === this.#options.servers.run
  }

  #ended(node: string): void {
    const session = this.#open.get(node)
    if (session === undefined) return
    this.#open.delete(node)
    const entry = this.#options.collections.presence.get('', node)
    if (entry?.value.session !== session) return
    // If this fails, `settle` removes it.
    void this.#remove(entry).catch((error: unknown) =>
      this.#options.log.debug('a closed node stream could not be removed from the store', {
        node,
        problem: String(error),
      }),
    )
  }

  async #remove(entry: Entry<PresenceRecord>): Promise<void> {
    await this.#options.collections.presence.delete(entry).catch(ignoreLost)
  }
}
