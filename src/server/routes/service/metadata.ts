// Handler of labels and annotations: kept in the record that they belong to, by compare-and-set.
import { ApiError, invalid, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/service/metadata.ts'
import type { Roles } from '../../../auth/roles.ts'
import { realNamespace } from '../../../rules/names.ts'
import type { Collection } from '../../../store/collection.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { RecordMeta } from '../../../store/records/record-meta.ts'
import type { Settings } from '../../config/settings.ts'
import { metadataProblems } from '../../gate/record-metadata.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface MetadataServices {
  readonly collections: Collections
  readonly roles: Roles
  readonly settings: Pick<Settings, 'compat'>
}

interface Kept {
  readonly namespace?: string
  readonly meta?: RecordMeta
  readonly labels?: RecordMeta['labels']
}

type Kind = (typeof api.kindsWithMetadata)[number]

interface Place {
  readonly collection: unknown
  /** Undefined: of the whole cluster. */
  readonly scope?: 'namespace'
  /** Who may change its records in other ways may change this. */
  readonly isForAdmins?: true
  /** Names have two spellings. */
  readonly isAliased?: true
}

export function metadata({ collections, roles, settings }: MetadataServices): HandlersOf<typeof api> {
  const places: Readonly<Record<Kind, Place>> = {
    vms: { collection: collections.vms, scope: 'namespace' },
    vmconfigs: { collection: collections.vmConfigs, scope: 'namespace' },
    images: { collection: collections.images },
    isos: { collection: collections.isos },
    nodes: { collection: collections.nodes, isForAdmins: true },
    pushjobs: { collection: collections.pushJobs, scope: 'namespace' },
    namespaces: { collection: collections.namespaces, isForAdmins: true, isAliased: true },
    serviceaccounts: { collection: collections.serviceAccounts, scope: 'namespace', isForAdmins: true },
    rolebindings: { collection: collections.roleBindings, scope: 'namespace', isForAdmins: true, isAliased: true },
  }

  /** What is in no scope of its own is changed in the namespace that it belongs to. */
  const belongs: Readonly<Partial<Record<Kind, (record: Kept, name: string, namespace: string) => boolean>>> = {
    nodes: (record, _name, namespace) => record.namespace === namespace,
    namespaces: (_record, name, namespace) => name === namespace,
  }

  return {
    async setMetadata({ params: { namespace, kind, record: asked }, body, principal }) {
      if (!Object.hasOwn(places, kind)) throw notFound(kind, asked, { namespace })
      const known = kind as Kind
      const { collection: found, scope, isForAdmins, isAliased } = places[known]
      const name = isAliased ? realNamespace(asked, settings.compat.namespaceAliases) : asked
      if (isForAdmins && roles.roleOf(principal, namespace) !== 'admin') throw forAdmins(known, name)
      if (body.labels === undefined && body.annotations === undefined)
        throw new ApiError('BadRequest', 'Specify at least one field to change', {
          kind,
          name,
          hint: 'Set labels or annotations',
        })
      const causes = metadataProblems({ labels: body.labels ?? {}, annotations: body.annotations ?? {} })
      if (causes.length > 0) throw invalid(kind, causes, 'Correct the fields in details.causes')
      const collection = found as Collection<Kept>
      const changed = await collection.change(collection.key(scope ? namespace : '', name), (record) => {
        const isHere = record && (belongs[known]?.(record, name, namespace) ?? true)
        if (!isHere) throw notFound(kind, name, { namespace })
        const annotations = body.annotations ?? record.meta?.annotations ?? {}
        const labels = body.labels ?? labelsOf(known, record)
        return known === 'vms'
          ? { ...record, labels, meta: { ...record.meta, annotations } }
          : { ...record, meta: { ...record.meta, labels, annotations } }
      })
      if (!changed) throw notFound(kind, name, { namespace })
      const { rev, value } = changed
      const annotations = { ...value.meta?.annotations }
      return { kind: known, name, labels: { ...labelsOf(known, value) }, annotations, resourceVersion: rev }
    },
  }
}

/** Labels of a VM are those that lists of the REST API select by. */
const labelsOf = (kind: Kind, { labels, meta }: Kept): NonNullable<RecordMeta['labels']> =>
  (kind === 'vms' ? labels : meta?.labels) ?? {}

const forAdmins = (kind: Kind, name: string): ApiError =>
  new ApiError('Forbidden', `Forbidden: only administrators change labels and annotations of ${kind}`, {
    kind,
    name,
    hint: 'Ask a cluster administrator',
  })
