// Finds the record that a path names, and refuses a change of it without fields.
import { ApiError, notFound } from '../../api/errors.ts'
import type { Collection } from '../../store/collection.ts'
import type { Entry } from '../../store/store.ts'

export const existingIn =
  <T>(collection: Collection<T>, kind: string) =>
  (namespace: string, name: string): Entry<T> => {
    const entry = collection.get(namespace, name)
    if (!entry) throw notFound(kind, name, { namespace })
    return entry
  }

/** Returns the refusal of a change without fields. `hint` names the fields. */
export const nothingToChange = (kind: string, name: string, hint: string): ApiError =>
  new ApiError('BadRequest', 'Specify at least one field to change', { kind, name, hint })
