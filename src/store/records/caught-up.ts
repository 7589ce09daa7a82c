// Waits until views have everything up to a revision that was written under any prefix, here or by another server. A view by
// itself knows only of its own prefix: between two bookmarks it cannot tell "nothing happened" from "not yet heard".
import { compareRevs, type Rev, type Store } from '../store.ts'
import type { View } from '../view.ts'

/** Throws when `signal` aborts first. */
export async function caughtUp(
  store: Pick<Store, 'reached'>,
  views: readonly Pick<View<unknown>, 'rev' | 'reached'>[],
  rev: Rev,
  signal: AbortSignal,
): Promise<void> {
  const behind = views.filter((view) => compareRevs(view.rev, rev) < 0)
  if (behind.length === 0) return
  await store.reached(rev, signal)
  await Promise.all(behind.map((view) => view.reached(rev, signal)))
}

/** A revision that is not older than any write that was acknowledged, by whichever server, before this was called. */
export const currentRev = async (store: Pick<Store, 'list'>): Promise<Rev> =>
  (await store.list('/cluster/', { limit: 1 })).rev
