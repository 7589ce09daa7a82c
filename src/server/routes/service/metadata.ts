// Handler of labels and annotations: kept in the record that they belong to, by compare-and-set.
import { ApiError, type Cause, invalid, notFound } from '../../../api/errors.ts'
import type * as api from '../../../api/service/metadata.ts'
import type { Roles } from '../../../auth/roles.ts'
import type { Collection } from '../../../store/collection.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { RecordMeta } from '../../../store/records/fleet-records.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface MetadataServices {
  readonly collections: Pick<Collections, 'vms' | 'vmConfigs' | 'images' | 'isos' | 'nodes'>
  readonly roles: Roles
}

interface Kept {
  readonly namespace?: string
  readonly meta?: RecordMeta
  readonly labels?: RecordMeta['labels']
}

type Kind = (typeof api.kindsWithMetadata)[number]

const maxLabels = 64
const maxAnnotationChars = 131_072

export function metadata({ collections, roles }: MetadataServices): HandlersOf<typeof api> {
  /** Where its records are, and in which scope. */
  const places: Readonly<Record<Kind, { readonly collection: unknown; readonly isInNamespace: boolean }>> = {
    vms: { collection: collections.vms, isInNamespace: true },
    vmconfigs: { collection: collections.vmConfigs, isInNamespace: true },
    images: { collection: collections.images, isInNamespace: false },
    isos: { collection: collections.isos, isInNamespace: false },
    nodes: { collection: collections.nodes, isInNamespace: false },
  }

  return {
    async setMetadata({ params: { namespace, kind, record: name }, body: { labels, annotations }, principal }) {
      if (!Object.hasOwn(places, kind)) throw notFound(kind, name, { namespace })
      const known = kind as Kind
      if (known === 'nodes' && roles.roleOf(principal, namespace) !== 'admin') throw forNodes(name)
      const causes = problemsOf(labels, annotations)
      if (causes.length > 0) throw invalid(kind, causes, 'Correct the fields in details.causes')
      const { isInNamespace } = places[known]
      const collection = places[known].collection as Collection<Kept>
      const key = collection.key(isInNamespace ? namespace : '', name)
      const isHere = (record: Kept): boolean => known !== 'nodes' || record.namespace === namespace
      const changed = await collection.change(key, (record) => {
        if (!record || !isHere(record)) throw notFound(kind, name, { namespace })
        // Labels of a VM are those that lists of the REST API select by.
        return known === 'vms'
          ? { ...record, labels, meta: { labels: {}, annotations } }
          : { ...record, meta: { labels, annotations } }
      })
      if (!changed) throw notFound(kind, name, { namespace })
      return { kind: known, name, labels, annotations, resourceVersion: changed.rev }
    },
  }
}

function problemsOf(labels: RecordMeta['labels'], annotations: RecordMeta['annotations']): Cause[] {
  const cause = (field: string, message: string): Cause => ({ field, reason: 'FieldValueInvalid', message })
  const isName = (name: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_./-]{0,316}$/.test(name)
  const bad = (field: string, names: readonly string[]): Cause[] =>
    names.filter((name) => !isName(name)).map((name) => cause(field, `${field}: invalid name "${name.slice(0, 50)}"`))
  const chars = Object.entries(annotations).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return [
    ...bad('labels', Object.keys(labels)),
    ...bad('annotations', Object.keys(annotations)),
    ...(Object.keys(labels).length > maxLabels ? [cause('labels', `labels: at most ${maxLabels}`)] : []),
    ...(Object.values(labels).some((value) => value.length > 256)
      ? [cause('labels', 'labels: a value has more than 256 characters')]
      : []),
    ...(chars > maxAnnotationChars
      ? [cause('annotations', `annotations: at most ${maxAnnotationChars} characters together`)]
      : []),
  ].slice(0, 20)
}

const forNodes = (name: string): ApiError =>
  new ApiError('Forbidden', 'Forbidden: only administrators change labels and annotations of nodes', {
    kind: 'nodes',
    name,
    hint: 'Ask a cluster administrator',
  })
