// A watch behind a shim over an SQL database. Such a shim numbers a change when it begins and shows it when it is
// committed: what it reads from its table for a new watch may lack a change whose number is smaller than others' that are
// there, and never bring it. What is committed later it brings in order and without gaps, but its notices of progress may
// overtake changes. So a watch counts only from the second of two changes of our own on, and progress not at all.
import { type EtcdClient, EtcdFailure } from './client.ts'
import type { Range } from './protocol.ts'
import { type Deliver, readWatch, type WatchEnd } from './watch.ts'

export interface SoundWatchOptions {
  readonly client: EtcdClient
  readonly range: Range
  readonly newest: () => Promise<number>
  /** Makes a change, for its revision. */
  readonly sync: () => Promise<number>
  /** From here on everything is delivered; what came before is to be read from the past, which is whole by now. */
  readonly begun: (revision: number) => void
  readonly deliver: Deliver
}

const proofMs = 10_000

/** From now on, until `signal` aborts or the shim ends it. Never rejects. */
export async function readSoundWatch(options: SoundWatchOptions, signal: AbortSignal): Promise<WatchEnd> {
  const { client, range, newest, sync, begun, deliver } = options
  const over = new AbortController()
  let failure: WatchEnd | undefined
  const fail = (text: string): void => {
    failure = { kind: 'failed', text }
    over.abort()
  }
  const timer = setTimeout(() => fail('it does not show what was written'), proofMs)
  let seen = 0
  let isSound = false
  let arrival = Promise.withResolvers<void>()
  const prove = async (): Promise<void> => {
    // When the first has come, the table was read; the second comes in order, and everything before it is committed.
    for (let change = 1; change <= 2; change++) {
      const revision = await sync()
      while (seen < revision && !over.signal.aborted) await arrival.promise
    }
    if (over.signal.aborted) return
    clearTimeout(timer)
    isSound = true
    begun(seen)
  }
  const wake = (): void => {
    arrival.resolve()
    arrival = Promise.withResolvers()
  }
  try {
    const from = (await newest()) + 1
    const ended = readWatch(client, range, from, AbortSignal.any([signal, over.signal]), (events, revision) => {
      if (events.length === 0) return
      if (isSound) return deliver(events, revision)
      seen = revision
      wake()
    })
    const proved = prove().catch((error: unknown) => fail(error instanceof Error ? error.message : String(error)))
    const end = await ended
    over.abort()
    wake()
    await proved
    return failure ?? end
  } catch (error) {
    if (error instanceof EtcdFailure) return { kind: 'failed', text: error.message }
    throw error
  } finally {
    clearTimeout(timer)
  }
}
