// Which chunks of an image its boot reads first, as nodes report it. Nodes that fetch the image later start with these.
import { longestBootOrder } from '../../api/nodes/agent.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import { ignoreLost } from '../../store/store.ts'

/** Only the orders that were used last are stored. */
const maxOrders = 500
/** An order that stays the same is written once a day, so that it counts as used. */
const unwrittenMs = 24 * 60 * 60_000

export async function recordBootOrder(
  {
    collections: { bootOrders },
    clock,
  }: { readonly collections: Pick<Collections, 'bootOrders'>; readonly clock: Clock },
  content: string,
  chunks: readonly number[] | undefined,
): Promise<readonly number[]> {
  if (!chunks) return bootOrders.get('', content)?.value.chunks ?? []
  const changed = await bootOrders.change(bootOrders.key('', content), (before) => {
    // The chunks of the last boot, then those that only earlier boots read.
    const after = [...new Set([...chunks, ...(before?.chunks ?? [])])].slice(0, longestBootOrder)
    const now = clock.now()
    const isRecent = before && now.getTime() - Date.parse(before.at) < unwrittenMs
    return isRecent && before.chunks.join() === after.join() ? before : { chunks: after, at: timestamp(now) }
  })
  const all = bootOrders.list()
  if (all.length > maxOrders) {
    const [oldest] = all.toSorted((one, other) => (one.value.at < other.value.at ? -1 : 1))
    if (oldest) await bootOrders.delete(oldest).catch(ignoreLost)
  }
  return changed?.value.chunks ?? []
}
