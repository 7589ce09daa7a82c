// Finds the record that a path names.
import { notFound } from '../../api/errors.ts'
import type { Collection } from '../../store/collection.ts'
import type { Entry } from '../../store/store.ts'

/** Returns a function that reads a record of the collection, or throws NotFound. */
export const existingIn =
  <T>(collection: Collection<T>, kind: string) =>
  (namespace: string, name: string): Entry<T> => {
    const entry = collection.get(namespace, name)
    if (!entry) throw notFound(kind, name, { namespace })
    return entry
  }
