// VMs in the store. What the code calls `desired` was called `wish` when the first data were written, and still is there:
// servers of two versions share a store while a cluster is upgraded, so the names of stored fields stay.
import type { KindStore } from '../collection.ts'
import type { Change, Entry, Json, Store } from '../store.ts'

export function storedVms(store: Store): KindStore {
  // One for each: what is kept by the identity of an entry, such as its text in lists, is found again.
  const known = new WeakMap<Entry, Entry>()
  const loaded = (entry: Entry): Entry => {
    const found = known.get(entry) ?? { ...entry, value: withField(entry.value, 'wish', 'desired') }
    known.set(entry, found)
    return found
  }
  /** When it is looked at: views have the entry that it was. */
  const loadedLater = (entry: Entry): Entry => ({
    key: entry.key,
    get value() {
      return loaded(entry).value
    },
    rev: entry.rev,
  })
  const loadedChange = (change: Change): Change => ({
    ...change,
    ...('entry' in change && { entry: loaded(change.entry) }),
    ...(change.previous && { previous: loadedLater(change.previous) }),
  })
  const stored = (value: Json): Json => withField(value, 'desired', 'wish')
  return {
    create: async (key, value, given) => loaded(await store.create(key, stored(value), given)),
    update: async (key, value, expect, given) => loaded(await store.update(key, stored(value), expect, given)),
    delete: (key, expect) => store.delete(key, expect),
    async list(prefix, page) {
      const { entries, rev } = await store.list(prefix, page)
      return { entries: entries.map(loaded), rev }
    },
    async *watch(...watched) {
      for await (const batch of store.watch(...watched)) yield 'type' in batch ? batch : batch.map(loadedChange)
    },
  }
}

function withField(value: Json, from: string, to: string): Json {
  const { [from]: field, ...rest } = value as Readonly<Record<string, Json>>
  return field === undefined ? value : { ...rest, [to]: field }
}
