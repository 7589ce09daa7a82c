// Finds the record that a path names.
import { notFound } from '../../api/errors.ts'
import type { Collection } from '../../store/collection.ts'
import type { Entry } from '../../store/store.ts'

export const existingIn =
  <T>(collection: Collection<T>, kind: string) =>
  (namespace: string, name: string): Entry<T> => {
    const entry = collection.get(namespace, name)
    if (!entry) throw notFound(kind, name, { namespace })
    return entry
  }
