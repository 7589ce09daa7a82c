// Labels, annotations, finalizers and owner references of a record, with limits that keep the record small.
import { type Cause, invalidField, invalidIf } from '../../api/errors.ts'
import { nounOfWire } from '../../api/nouns.ts'
import type { kindsWithMetadata } from '../../api/service/metadata.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import type { Collection } from '../../store/collection.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { RecordMeta } from '../../store/records/record-meta.ts'

export type KindWithMetadata = (typeof kindsWithMetadata)[number]

export interface RecordWithMetadata {
  readonly namespace?: string
  readonly meta?: RecordMeta
  readonly labels?: RecordMeta['labels']
}

interface MetadataRule {
  /** Only administrators may change the metadata. */
  readonly isForAdmins?: true
  /** Names are namespaces, which have two spellings. */
  readonly isAliased?: true
}

export const metadataRules: Readonly<Record<KindWithMetadata, MetadataRule>> = {
  vms: {},
  vmconfigs: {},
  images: {},
  isos: {},
  nodes: { isForAdmins: true },
  pushjobs: {},
  namespaces: { isForAdmins: true, isAliased: true },
  serviceaccounts: { isForAdmins: true },
  rolebindings: { isForAdmins: true, isAliased: true },
}

/** The scope of a namespace's records in the collection of a kind. Records of the cluster have no scope. */
export const scopeOf = (kind: KindWithMetadata, namespace: string): string =>
  nounOfWire(kind)?.scope === 'namespace' ? namespace : ''

/** The collection of a kind, typed by the fields that all kinds with metadata share. */
export const metadataCollection = (collections: Collections, kind: KindWithMetadata): Collection<RecordWithMetadata> =>
  collections[nounOfWire(kind)?.records as keyof Collections] as unknown as Collection<RecordWithMetadata>

/** Assumes that the caller may call operations in the namespace. */
export const mayChangeMetadata = (kind: KindWithMetadata, roles: Roles, principal: Principal, namespace: string) =>
  !metadataRules[kind].isForAdmins || roles.roleOf(principal, namespace) === 'admin'

type Texts = Readonly<Record<string, string>>

interface Kept {
  readonly labels: Texts
  readonly annotations: Texts
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly object[]
}

const maxEntries = { labels: 64, annotations: 1_000, finalizers: 32, ownerReferences: 32 } as const
const maxAnnotationChars = 131_072

const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_./-]{0,316}$/.test(name)

/** svc3 recognises VMs that it deployed, and may delete, by its own labels, so callers cannot set them. */
export const ownLabelProblems = (labels: Texts, had: Texts = {}): Cause[] =>
  Object.keys(labels).flatMap((name) =>
    name.startsWith('svc3/') && labels[name] !== had[name]
      ? [invalidField('labels', `label "${name.slice(0, 50)}": labels beginning with svc3/ are set by svc3`)]
      : [],
  )

/** Returns a cause for each field with too many entries, without a look at the entries. `spare` are allowed besides. */
export const countProblems = (metadata: Readonly<Partial<Record<keyof Kept, unknown>>>, spare = 0): Cause[] =>
  (Object.keys(maxEntries) as (keyof Kept)[]).flatMap((field) => {
    const entries = metadata[field]
    const count = typeof entries === 'object' && entries !== null ? Object.keys(entries).length : 0
    return invalidIf(count > maxEntries[field] + spare, field, `${field}: at most ${maxEntries[field]}`)
  })

export function metadataProblems({ labels, annotations, finalizers = [], ownerReferences = [] }: Kept): Cause[] {
  const tooMany = countProblems({ labels, annotations, finalizers, ownerReferences })
  if (tooMany.length > 0) return tooMany
  const names = (field: string, all: readonly string[]): Cause[] =>
    all
      .filter((name) => !isName(name))
      .map((name) => invalidField(field, `${field}: invalid name "${name.slice(0, 50)}"`))
  const chars = Object.entries(annotations).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return [
    ...(chars > maxAnnotationChars
      ? [invalidField('annotations', `annotations: at most ${maxAnnotationChars} characters together`)]
      : []),
    ...(Object.values(labels).some((value) => value.length > 256)
      ? [invalidField('labels', 'labels: a value has more than 256 characters')]
      : []),
    ...names('labels', Object.keys(labels)),
    ...names('annotations', Object.keys(annotations)),
    ...names('finalizers', finalizers),
  ]
}
