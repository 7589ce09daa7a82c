// Waits until views have everything up to a revision, whichever server wrote it, under whichever prefix. Between two
// bookmarks a view alone cannot tell whether nothing has changed under its prefix or a change is still to arrive.
import { compareRevs, type Rev, type Store } from '../store.ts'
import type { View } from '../view.ts'

/** Rejects if `signal` aborts first. */
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

/** A revision that is not older than any write that was acknowledged, by any server, before this call. */
export const currentRev = async (store: Pick<Store, 'list'>): Promise<Rev> =>
  (await store.list('/cluster/', { limit: 1 })).rev
