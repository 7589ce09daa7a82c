// A store that reports how long each call took, for metrics. Watches are not measured, because they last as long as
// their reader.
import { type Store, StoreError, type StoreFault } from './store.ts'

type StoreOperation = Exclude<keyof Store, 'watch' | 'reached' | 'close' | 'exchange'>
type StoreOutcome = 'ok' | StoreFault | 'error'
type Observe = (operation: StoreOperation, seconds: number, outcome: StoreOutcome) => void

export function measured(store: Store, observe: Observe): Store {
  function timed<T>(operation: StoreOperation, startMs: number, working: Promise<T>): Promise<T> {
    const report = (outcome: StoreOutcome): void => observe(operation, (performance.now() - startMs) / 1_000, outcome)
    working.then(
      () => report('ok'),
      (error: unknown) => report(error instanceof StoreError ? error.fault : 'error'),
    )
    return working
  }
  const now = (): number => performance.now()
  return {
    get: (key) => timed('get', now(), store.get(key)),
    list: (prefix, page) => timed('list', now(), store.list(prefix, page)),
    create: (key, value, preconditions) => timed('create', now(), store.create(key, value, preconditions)),
    update: (key, value, expect, preconditions) =>
      timed('update', now(), store.update(key, value, expect, preconditions)),
    delete: (key, expect) => timed('delete', now(), store.delete(key, expect)),
    compact: (rev) => timed('compact', now(), store.compact(rev)),
    health: () => timed('health', now(), store.health()),
    watch: (...watched) => store.watch(...watched),
    reached: (rev, signal) => store.reached(rev, signal),
    ...(store.exchange && { exchange: store.exchange }),
    failed: store.failed,
    close: () => store.close(),
  }
}
