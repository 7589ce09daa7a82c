// Read-your-writes across servers that share a store: a request that has seen a revision on another server waits here
// until this server has seen it too.
import { compareRevs, type Rev, type Store, StoreError, zeroRev } from './store.ts'
import type { View } from './view.ts'

type Seen = Pick<View<unknown>, 'rev' | 'reached'>

export class Horizon {
  readonly #store: Pick<Store, 'reached' | 'list'>
  readonly #views: readonly Seen[]
  /** Every view has reached this revision. Views never go back. */
  #floor: Rev = zeroRev
  #asking: Promise<void> = Promise.resolve()
  #next: Promise<Rev> | undefined

  constructor(store: Pick<Store, 'reached' | 'list'>, views: readonly Seen[]) {
    this.#store = store
    this.#views = views
  }

  /** The latest revision that a view has reached. No response of this server can show or have written a later one. */
  get rev(): Rev {
    return this.#views.reduce((latest, { rev }) => (compareRevs(rev, latest) > 0 ? rev : latest), zeroRev)
  }

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
   * Resolves once this server has seen everything up to `rev`. Resolves to false if the store never reached `rev`, for
   * example because it was restored from a backup. Throws Unavailable after `timeoutMs`.
   */
  async reached(rev: Rev, timeoutMs: number): Promise<boolean> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      // If a view has reached the revision, so has the store. Not asking the store also works without a quorum.
      if (compareRevs(this.rev, rev) < 0 && compareRevs(await this.#newest(signal), rev) < 0) return false
      await this.#store.reached(rev, signal)
      await this.shown(rev, signal)
      return true
    } catch (cause) {
      throw new StoreError('Unavailable', `This server has not seen revision ${rev} yet`, { cause })
    }
  }

  /** Resolves once every view has what the store delivered up to `rev`. */
  async shown(rev: Rev, signal: AbortSignal): Promise<void> {
    await Promise.all(this.#views.map((view) => view.reached(rev, signal)))
  }

  /** Resolves once this server has seen everything that any server had written before the call. Throws Unavailable. */
  async current(timeoutMs: number): Promise<void> {
    const rev = await this.#newest(AbortSignal.timeout(timeoutMs)).catch((cause: unknown) => {
      throw new StoreError('Unavailable', 'The store does not say how far it is', { cause })
    })
    if (!this.has(rev)) await this.reached(rev, timeoutMs)
  }

  /**
   * The store's revision, requested after this call. Only one request runs at a time, and all callers that arrive
   * in between share the next one, so clients that invent revisions cannot overload the store.
   */
  async #newest(signal: AbortSignal): Promise<Rev> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    // The request may outlast the caller's signal, and the previous request has to end first.
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
