// How far this server is, where several share a store: whoever has seen a revision elsewhere waits here until it is seen
// here as well. So a caller reads what they wrote, and never goes back, whichever server they come to.
import { compareRevs, type Rev, type Store, StoreError, zeroRev } from './store.ts'
import type { View } from './view.ts'

type Seen = Pick<View<unknown>, 'rev' | 'reached'>

export class Horizon {
  readonly #store: Pick<Store, 'reached' | 'list'>
  readonly #views: readonly Seen[]
  /** Every view had this once, and views do not go back. */
  #floor: Rev = zeroRev
  #asking: Promise<void> = Promise.resolve()
  #next: Promise<Rev> | undefined

  constructor(store: Pick<Store, 'reached' | 'list'>, views: readonly Seen[]) {
    this.#store = store
    this.#views = views
  }

  /** No answer of this server shows or has made anything that is later. */
  get rev(): Rev {
    return this.#views.reduce((latest, { rev }) => (compareRevs(rev, latest) > 0 ? rev : latest), zeroRev)
  }

  /** Whether everything up to there is seen here. */
  has(rev: Rev): boolean {
    if (compareRevs(this.#floor, rev) >= 0) return true
    const [first, ...others] = this.#views
    this.#floor = others.reduce(
      (least, view) => (compareRevs(view.rev, least) < 0 ? view.rev : least),
      first?.rev ?? rev,
    )
    return compareRevs(this.#floor, rev) >= 0
  }

  /**
   * Resolves when everything up to there is seen here: to false when the store itself has never been there, so that
   * there is nothing to wait for (it was restored from a backup, say). Throws Unavailable when it takes too long.
   */
  async reached(rev: Rev, timeoutMs: number): Promise<boolean> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      // What a view has here, the store has had: nobody needs to ask, and without a quorum nobody could.
      if (compareRevs(this.rev, rev) < 0 && compareRevs(await this.#newest(signal), rev) < 0) return false
      await this.#store.reached(rev, signal)
      await this.shown(rev, signal)
      return true
    } catch (cause) {
      throw new StoreError('Unavailable', `This server has not seen revision ${rev} yet`, { cause })
    }
  }

  /** Resolves when every view has what the store handed over up to there. */
  async shown(rev: Rev, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#views.map((view) => view.reached(rev, signal)))
  }

  /** Resolves when everything that was written before, by whichever server, is seen here. Throws Unavailable. */
  async current(timeoutMs: number): Promise<void> {
    const rev = await this.#newest(AbortSignal.timeout(timeoutMs)).catch((cause: unknown) => {
      throw new StoreError('Unavailable', 'The store does not say how far it is', { cause })
    })
    if (!this.has(rev)) await this.reached(rev, timeoutMs)
  }

  /**
   * The store's own revision, asked for after this was called. One question at a time, whoever comes meanwhile shares the
   * next one: callers who make revisions up cost the store nothing.
   */
  async #newest(signal: AbortSignal): Promise<Rev> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    // The store has more patience than its callers, and the question before this one has to end first.
    return Promise.race([this.#ask(), late])
  }

  #ask(): Promise<Rev> {
    this.#next ??= this.#asking.then(() => {
      this.#next = undefined
      const page = this.#store.list('/store/', { limit: 1 })
      this.#asking = page.then(
        () => undefined,
        () => undefined,
      )
      return page.then(({ rev }) => rev)
    })
    return this.#next
  }
}
