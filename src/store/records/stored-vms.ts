// Converts VM records of versions up to 3.0.0-alpha.26, in which `desired` was called `wish`.
import type { KindStore } from '../collection.ts'
import type { Change, Entry, Json, Store } from '../store.ts'

type StoredVm = Readonly<Record<string, Json>> & { readonly wish?: Json }

export function storedVms(store: Store): KindStore {
  // One converted entry for each original, so that caches keyed by entry find it again.
  const known = new WeakMap<Entry, Entry>()
  const loaded = (entry: Entry): Entry => {
    if ((entry.value as StoredVm).wish === undefined) return entry
    const { wish, ...rest } = entry.value as StoredVm
    const found = known.get(entry) ?? { ...entry, value: { ...rest, desired: wish as Json } }
    known.set(entry, found)
    return found
  }
  /** Converts an entry only when its value is read, because views use their own previous entry. */
  const loadedLater = (entry: Entry): Entry => ({
    key: entry.key,
    get value() {
      return loaded(entry).value
    },
    rev: entry.rev,
    ...(entry.bytes !== undefined && { bytes: entry.bytes }),
  })
  const loadedChange = (change: Change): Change => ({
    ...change,
    ...('entry' in change && { entry: loaded(change.entry) }),
    ...(change.previous && { previous: loadedLater(change.previous) }),
  })
  return {
    create: (key, value, preconditions) => store.create(key, value, preconditions),
    update: (key, value, expect, preconditions) => store.update(key, value, expect, preconditions),
    delete: (key, expect) => store.delete(key, expect),
    async list(prefix, page) {
      const { entries, rev } = await store.list(prefix, page)
      return { entries: entries.map(loaded), rev }
    },
    watch: (prefix, after, signal, options) =>
      store.watch(prefix, after, signal, { ...options, through: (changes) => changes.map(loadedChange) }),
  }
}
