// Metadata that clients of the Kubernetes API keep with records of any kind, and the generation of a record.
import { isDeepStrictEqual } from 'node:util'

/** A caller, stored with a browser session or with a deletion that waits for finalizers. */
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

export interface ManagedFields {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly time: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: Readonly<Record<string, unknown>>
}

export interface RecordMeta {
  /** Not for VMs, whose labels are a field of their own records. */
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Incremented with every change of the spec, by either API. Default: 1. */
  readonly generation?: number
  /** Deletions by the Kubernetes API wait until this is empty. */
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly ManagedFields[]
  /** Set while finalizers delay a deletion. */
  readonly deletion?: { readonly at: string; readonly by: CallerRecord }
}

interface WithMeta {
  readonly meta?: RecordMeta
}

/** Increments the generation of a record whenever one of these values changes. */
export const raising =
  <T extends WithMeta>(specOf: (record: T) => readonly unknown[]) =>
  (before: T, after: T): T => {
    const was = specOf(before)
    // Most changes keep the same objects.
    const isSame = specOf(after).every((value, index) => value === was[index] || isDeepStrictEqual(value, was[index]))
    if (isSame) return after
    return { ...after, meta: { ...after.meta, generation: (before.meta?.generation ?? 1) + 1 } }
  }
