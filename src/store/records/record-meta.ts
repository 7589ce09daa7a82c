// What clients of the Kubernetes wire keep with a record of any kind, and the count of changes of what the record asks for.
import { isDeepStrictEqual } from 'node:util'

/** Who asked for something that is carried out later. */
export type CallerRecord =
  | { readonly kind: 'user'; readonly name: string; readonly admin: boolean; readonly uid?: string }
  | { readonly kind: 'serviceaccount'; readonly name: string; readonly namespace: string; readonly uid: string }

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

/** Which fields of an object one of its writers manages. */
export interface ManagedFields {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly time: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: Readonly<Record<string, unknown>>
}

export interface RecordMeta {
  /** Those of a VM are its own, and stand in its record. */
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Grows with every change of what the record asks for, by whichever API. Absent: 1. */
  readonly generation?: number
  /** A deletion by the Kubernetes wire waits until nobody has one there. */
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFields[]
  /** Set while finalizers keep it: since when, and as whom it is deleted then. */
  readonly deletion?: { readonly at: string; readonly by: CallerRecord }
}

interface WithMeta {
  readonly meta?: RecordMeta
}

/** For a collection: raises the generation of a record with every change of these of its values. */
export const raising =
  <T extends WithMeta>(specOf: (record: T) => readonly unknown[]) =>
  (before: T, after: T): T => {
    const was = specOf(before)
    // Most changes leave the very same values there.
    const isSame = specOf(after).every((value, index) => value === was[index] || isDeepStrictEqual(value, was[index]))
    if (isSame) return after
    return { ...after, meta: { ...after.meta, generation: (before.meta?.generation ?? 1) + 1 } }
  }
