// Handler of labels and annotations.
import { ApiError, invalid, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/service/metadata.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { realNamespace } from '../../../rules/names.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { ImageRecord } from '../../../store/records/fleet-records.ts'
import type { RecordMeta } from '../../../store/records/record-meta.ts'
import type { Settings } from '../../config/settings.ts'
import { nothingToChange } from '../../gate/existing.ts'
import {
  type KindWithMetadata,
  mayChangeMetadata,
  metadataCollection,
  metadataProblems,
  metadataRules,
  ownLabelProblems,
  type RecordWithMetadata,
  scopeOf,
} from '../../gate/record-metadata.ts'
import { assertMayChange } from '../../images/store.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface MetadataServices {
  readonly collections: Collections
  readonly roles: Roles
  readonly settings: Pick<Settings, 'compat'>
}

export function metadata({ collections, roles, settings }: MetadataServices): HandlersOf<typeof api> {
  /** Records of nodes and namespaces are not in a namespace, but are changed in the one that they belong to. */
  const belongs: Readonly<
    Partial<Record<KindWithMetadata, (record: RecordWithMetadata, name: string, namespace: string) => boolean>>
  > = {
    nodes: (record, _name, namespace) => record.namespace === namespace,
    namespaces: (_record, name, namespace) => name === namespace,
  }

  return {
    async setMetadata({ params: { namespace, kind, record: typed }, body, principal }) {
      if (!Object.hasOwn(metadataRules, kind)) throw notFound(kind, typed, { namespace })
      const known = kind as KindWithMetadata
      const { isAliased } = metadataRules[known]
      const name = isAliased ? realNamespace(typed, settings.compat.namespaceAliases) : typed
      if (!mayChangeMetadata(known, roles, principal, namespace)) throw forAdmins(known, name)
      if (body.labels === undefined && body.annotations === undefined)
        throw nothingToChange(kind, name, 'Set labels or annotations')
      const causes = metadataProblems({ labels: body.labels ?? {}, annotations: body.annotations ?? {} })
      if (causes.length > 0) throw invalid(kind, causes, 'Correct the fields in details.causes')
      const collection = metadataCollection(collections, known)
      const caller = callerOf(roles, principal)
      const changed = await collection.change(collection.key(scopeOf(known, namespace), name), (record) => {
        const isInNamespace = record && (belongs[known]?.(record, name, namespace) ?? true)
        if (!isInNamespace) throw notFound(kind, name, { namespace })
        if (known === 'images' || known === 'isos')
          assertMayChange(known, record as unknown as ImageRecord, caller, 'change its labels and annotations')
        const annotations = body.annotations ?? record.meta?.annotations ?? {}
        const labels = body.labels ?? labelsOf(known, record)
        const own = known === 'vms' ? ownLabelProblems(labels, record.labels) : []
        if (own.length > 0) throw invalid(kind, own, 'Leave out these labels')
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

/** Labels of VMs have a separate field, by which lists of the REST API select. */
const labelsOf = (kind: KindWithMetadata, { labels, meta }: RecordWithMetadata): NonNullable<RecordMeta['labels']> =>
  (kind === 'vms' ? labels : meta?.labels) ?? {}

const forAdmins = (kind: KindWithMetadata, name: string): ApiError =>
  new ApiError('Forbidden', `Forbidden: only administrators change labels and annotations of ${kind}`, {
    kind,
    name,
    hint: 'Ask a cluster administrator',
  })
