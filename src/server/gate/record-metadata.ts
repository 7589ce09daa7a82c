// What may be kept with a record: labels, annotations, finalizers and owner references, with the limits that keep a record
// small.
import { type Cause, invalidField } from '../../api/errors.ts'
import type { kindsWithMetadata } from '../../api/service/metadata.ts'
import type { Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import type { Collection } from '../../store/collection.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { RecordMeta } from '../../store/records/record-meta.ts'

export type KindWithMetadata = (typeof kindsWithMetadata)[number]

/** What the records of all these kinds have of it. */
export interface RecordWithMetadata {
  readonly namespace?: string
  readonly meta?: RecordMeta
  readonly labels?: RecordMeta['labels']
}

interface Place {
  readonly collection: (collections: Collections) => unknown
  /** Undefined: of the whole cluster. */
  readonly scope?: 'namespace'
  /** Who may change its records in other ways may change this. */
  readonly isForAdmins?: true
  /** Names have two spellings. */
  readonly isAliased?: true
}

export const metadataPlaces: Readonly<Record<KindWithMetadata, Place>> = {
  vms: { collection: ({ vms }) => vms, scope: 'namespace' },
  vmconfigs: { collection: ({ vmConfigs }) => vmConfigs, scope: 'namespace' },
  images: { collection: ({ images }) => images },
  isos: { collection: ({ isos }) => isos },
  nodes: { collection: ({ nodes }) => nodes, isForAdmins: true },
  pushjobs: { collection: ({ pushJobs }) => pushJobs, scope: 'namespace' },
  namespaces: { collection: ({ namespaces }) => namespaces, isForAdmins: true, isAliased: true },
  serviceaccounts: { collection: ({ serviceAccounts }) => serviceAccounts, scope: 'namespace', isForAdmins: true },
  rolebindings: {
    collection: ({ roleBindings }) => roleBindings,
    scope: 'namespace',
    isForAdmins: true,
    isAliased: true,
  },
}

/** Where records of a kind are. They differ, and have these fields alike. */
export const metadataCollection = (collections: Collections, kind: KindWithMetadata): Collection<RecordWithMetadata> =>
  metadataPlaces[kind].collection(collections) as Collection<RecordWithMetadata>

/** Of somebody who may call operations in the namespace. */
export const mayChangeMetadata = (kind: KindWithMetadata, roles: Roles, principal: Principal, namespace: string) =>
  !metadataPlaces[kind].isForAdmins || roles.roleOf(principal, namespace) === 'admin'

type Texts = Readonly<Record<string, string>>

interface Kept {
  readonly labels: Texts
  readonly annotations: Texts
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly object[]
}

const maxLabels = 64
const maxAnnotationChars = 131_072
const maxFinalizers = 32
const maxOwners = 32

const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_./-]{0,316}$/.test(name)

/** By these svc3 knows VMs that it deployed itself, and may delete: nobody else gives them to one. */
export const ownLabelProblems = (labels: Texts, had: Texts = {}): Cause[] =>
  Object.keys(labels).flatMap((name) =>
    name.startsWith('svc3/') && labels[name] !== had[name]
      ? [invalidField('labels', `label "${name.slice(0, 50)}": labels beginning with svc3/ are set by svc3`)]
      : [],
  )

/** All that is wrong with it; none: it may be kept. */
export function metadataProblems({ labels, annotations, finalizers = [], ownerReferences = [] }: Kept): Cause[] {
  const names = (field: string, all: readonly string[]): Cause[] =>
    all
      .filter((name) => !isName(name))
      .map((name) => invalidField(field, `${field}: invalid name "${name.slice(0, 50)}"`))
  const most = (field: string, count: number, limit: number): Cause[] =>
    count > limit ? [invalidField(field, `${field}: at most ${limit}`)] : []
  const chars = Object.entries(annotations).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return [
    ...most('labels', Object.keys(labels).length, maxLabels),
    ...most('finalizers', finalizers.length, maxFinalizers),
    ...most('ownerReferences', ownerReferences.length, maxOwners),
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
