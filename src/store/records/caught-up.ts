// Waits until a view has everything up to a revision that was written under any prefix, here or by another server. A view
// by itself knows only of its own prefix: between two bookmarks it cannot tell "nothing happened" from "not yet heard".
import { changeRev, compareRevs, type Rev, type Store } from '../store.ts'
import type { View } from '../view.ts'

/** Throws when `signal` aborts first. */
export async function caughtUp(
  store: Pick<Store, 'watch'>,
  view: Pick<View<unknown>, 'prefix' | 'rev' | 'reached'>,
  rev: Rev,
  signal: AbortSignal,
): Promise<void> {
  if (compareRevs(view.rev, rev) >= 0) return
  const looking = new AbortController()
  let last: Rev | undefined
  try {
    const changes = store.watch(view.prefix, view.rev, AbortSignal.any([looking.signal, signal]))
    for await (const batch of changes) {
      if ('type' in batch) {
        if (compareRevs(batch.rev, rev) >= 0) break
        continue
      }
      const newest = batch.at(-1)
      if (newest) last = changeRev(newest)
      if (last !== undefined && compareRevs(last, rev) >= 0) break
    }
  } finally {
    looking.abort()
  }
  signal.throwIfAborted()
  // What there was, the view gets as well; where there was nothing, it is current as it is.
  if (last !== undefined) await view.reached(last, signal)
}

/** A revision that is not older than any write that was acknowledged, by whichever server, before this was called. */
export const currentRev = async (store: Pick<Store, 'list'>): Promise<Rev> =>
  (await store.list('/cluster/', { limit: 1 })).rev
