// A store that tells how long each call took, for metrics. Watches pass through: they last as long as their reader.
import { type Store, StoreError, type StoreFault } from './store.ts'

type StoreOperation = Exclude<keyof Store, 'watch' | 'reached' | 'close' | 'exchange'>
type StoreOutcome = 'ok' | StoreFault | 'error'
type Observe = (operation: StoreOperation, seconds: number, outcome: StoreOutcome) => void

export function measured(store: Store, observe: Observe): Store {
  /** Beside the work: nobody waits longer for being measured. */
  function timed<T>(operation: StoreOperation, work: () => Promise<T>): Promise<T> {
    const startMs = performance.now()
    const tell = (outcome: StoreOutcome): void => observe(operation, (performance.now() - startMs) / 1_000, outcome)
    const working = work()
    working.then(
      () => tell('ok'),
      (error: unknown) => tell(error instanceof StoreError ? error.fault : 'error'),
    )
    return working
  }
  return {
    get: (key) => timed('get', () => store.get(key)),
    list: (prefix, page) => timed('list', () => store.list(prefix, page)),
    create: (key, value, given) => timed('create', () => store.create(key, value, given)),
    update: (key, value, expect) => timed('update', () => store.update(key, value, expect)),
    delete: (key, expect) => timed('delete', () => store.delete(key, expect)),
    compact: (rev) => timed('compact', () => store.compact(rev)),
    health: () => timed('health', () => store.health()),
    watch: (...watched) => store.watch(...watched),
    reached: (rev, signal) => store.reached(rev, signal),
    ...(store.exchange && { exchange: store.exchange }),
    failed: store.failed,
    close: () => store.close(),
  }
}
