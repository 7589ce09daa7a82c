// Leader election: one server of several runs the controllers. The lease is a record renewed by compare-and-set; each
// server judges it by its own monotonic clock, so wall clocks are never compared.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../platform/log.ts'
import { type Entry, isFault, type Json, type Store, StoreError } from '../store/store.ts'

interface LeadershipOptions {
  readonly store: Pick<Store, 'get' | 'create' | 'update'>
  readonly name: string
  readonly holder: string
  /** Starts the leader's work. The returned function ends it, and is called before another server can lead. */
  readonly lead: (term: number) => () => Promise<void>
  readonly log: Pick<Log, 'info' | 'error'>
  /** A leader that could not renew its record for this long steps down. */
  readonly leaseMs?: number
  readonly nowMs?: () => number
}

export interface Leadership {
  /** False once the lease has expired, even if no timer has fired yet. */
  isLeading(): boolean
  stop(): Promise<void>
}

interface LeaderRecord {
  /** Null: released, and free to be taken. */
  readonly holder: string | null
  /** Greater than that of every earlier leader. */
  readonly term: number
  readonly leaseMs: number
  /** Incremented to change the record with every renewal. */
  readonly beat: number
}

interface Lead {
  entry: Entry<LeaderRecord>
  untilMs: number
  readonly expiry: AbortController
  readonly end: () => Promise<void>
}

const defaultLeaseMs = 8_000
/** A server waits for this many leases before it takes over, far more than monotonic clocks drift apart. */
const graceFactor = 1.25

export function startLeadership(options: LeadershipOptions): Leadership {
  const { store, name, holder, lead, log, leaseMs = defaultLeaseMs, nowMs = () => performance.now() } = options
  const key = `/leadership/${name}`
  const stopping = new AbortController()
  let led: Lead | undefined
  /** The latest revision of the record of another leader, and when this server first saw it, by its own clock. */
  let seen: { readonly rev: string; readonly sinceMs: number } | undefined

  const isLeading = (): boolean => led !== undefined && nowMs() < led.untilMs
  const pause = (milliseconds: number): Promise<void> =>
    sleep(milliseconds * (0.8 + Math.random() * 0.4), undefined, { signal: stopping.signal, ref: false }).catch(
      () => undefined,
    )
  // No other code writes below this key.
  const typed = (entry: Entry<unknown>): Entry<LeaderRecord> => entry as Entry<LeaderRecord>
  const read = async (): Promise<Entry<LeaderRecord> | undefined> => {
    const entry = await store.get(key)
    return entry && typed(entry)
  }
  const write = async (record: LeaderRecord, entry?: Entry<LeaderRecord>): Promise<Entry<LeaderRecord>> => {
    const value: Json = { ...record }
    return typed(entry ? await store.update(key, value, entry.rev) : await store.create(key, value))
  }

  async function stepDown(why: string): Promise<void> {
    const ending = led
    if (!ending) return
    led = undefined
    seen = undefined
    ending.expiry.abort()
    log.info(`no longer leads ${name}: ${why}`)
    await ending.end()
  }

  /** Steps down when the lease expires, even while the store does not answer. */
  async function expire(mine: Lead): Promise<void> {
    while (led === mine && !mine.expiry.signal.aborted) {
      const leftMs = mine.untilMs - nowMs()
      if (leftMs <= 0) return stepDown('its record could not be renewed in time')
      await sleep(leftMs, undefined, { signal: mine.expiry.signal, ref: false }).catch(() => undefined)
    }
  }

  async function renew(mine: Lead): Promise<void> {
    const sentMs = nowMs()
    try {
      const { value } = mine.entry
      mine.entry = await write({ ...value, beat: value.beat + 1 }, mine.entry)
      mine.untilMs = sentMs + leaseMs
    } catch (error) {
      if (isFault(error, 'Conflict') || isFault(error, 'NotFound')) return settle(mine)
      if (!(error instanceof StoreError)) throw error
      // The outcome is unknown. The next attempt starts from the stored record.
      const entry = await read().catch(() => undefined)
      if (entry && isOurs(entry, mine)) mine.entry = entry
    }
  }

  /** Continues if the stored record is of this term, because only the answer to a write was lost. Else steps down. */
  async function settle(mine: Lead): Promise<void> {
    const entry = await read()
    if (entry && isOurs(entry, mine)) mine.entry = entry
    else await stepDown(entry?.value.holder ? `${entry.value.holder} does` : 'its record was released or deleted')
  }
  const isOurs = ({ value }: Entry<LeaderRecord>, mine: Lead): boolean =>
    value.holder === holder && value.term === mine.entry.value.term

  async function follow(): Promise<void> {
    const entry = await read()
    if (entry && entry.rev !== seen?.rev) seen = { rev: entry.rev, sinceMs: nowMs() }
    const quietMs = nowMs() - (seen?.sinceMs ?? nowMs())
    // The record names this process although it does not lead: the answer to its write was lost.
    const isAsked = entry?.value.holder === holder
    const isFree = !entry || isAsked || entry.value.holder === null || quietMs > entry.value.leaseMs * graceFactor
    if (!isFree || stopping.signal.aborted) return
    const sentMs = nowMs()
    const term = (entry?.value.term ?? 0) + 1
    const taken = await write({ holder, term, leaseMs, beat: 0 }, entry).catch((error: unknown) => {
      // Another server was first, or the outcome is unknown. The next attempt will tell.
      if (error instanceof StoreError) return undefined
      throw error
    })
    if (!taken) return
    log.info(`leads ${name}, term ${term}`)
    led = { entry: taken, untilMs: sentMs + leaseMs, expiry: new AbortController(), end: lead(term) }
    void expire(led)
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        if (led) await renew(led)
        else await follow()
      } catch (error) {
        if (!isFault(error, 'Unavailable')) log.error(`the leader's record of ${name} cannot be used`, {}, error)
      }
      await pause(leaseMs / 4)
    }
  })()

  return {
    isLeading,
    stop: async () => {
      stopping.abort()
      await running
      const last = led
      await stepDown('it stops')
      // Released after the work has ended, so that the next leader may begin at once.
      if (last) await write({ ...last.entry.value, holder: null }, last.entry).catch(() => undefined)
    },
  }
}
