// Labels and annotations of records, as in Kubernetes.
import * as t from 'typebox'
import { inNamespace, operation } from '../operation.ts'
import { ExpectedVersion, ResourceVersion } from '../records.ts'

export const kindsWithMetadata = [
  'vms',
  'vmconfigs',
  'images',
  'isos',
  'pushjobs',
  'nodes',
  'namespaces',
  'serviceaccounts',
  'rolebindings',
] as const

const Texts = (description: string) => t.Record(t.String({ maxLength: 317 }), t.String(), { description })
const metadataFields = { labels: Texts('Labels; of a VM, its own'), annotations: Texts('Annotations, at most 128 KiB') }
const RecordMetadata = t.Object(
  { kind: t.Enum(kindsWithMetadata), name: t.String(), ...metadataFields, resourceVersion: ResourceVersion },
  { title: 'RecordMetadata' },
)

const example = { labels: { team: 'ios' }, annotations: { 'example.com/ticket': 'IOS-42' } }

export const setMetadata = operation({
  id: 'setMetadata',
  noun: 'metadata',
  method: 'PUT',
  path: `${inNamespace}/metadata/{kind}/{record}`,
  allow: 'dev',
  summary: 'Replace the labels and annotations of a record',
  description:
    '`kind` is `vms`, `vmconfigs`, `images`, `isos` or `pushjobs`; for administrators also `nodes`, `namespaces`, `serviceaccounts` ' +
    'or `rolebindings`. Those of an image or ISO are for its owner, people of the namespace it was made in, and administrators; of a protected image ' +
    'only for administrators. Labels or annotations that the body omits are unchanged. Clients of the Kubernetes API see them as metadata of the object.',
  involves: 'params.record',
  involvesKind: (answer) => String((answer as { kind?: unknown } | undefined)?.kind ?? 'metadata'),
  past: 'changed labels or annotations of {name}',
  mayRepeat: true,
  isIdempotent: true,
  body: t.Object(
    {
      labels: t.Optional(metadataFields.labels),
      annotations: t.Optional(metadataFields.annotations),
      resourceVersion: ExpectedVersion,
    },
    { title: 'MetadataInput' },
  ),
  response: RecordMetadata,
  refuses: ['BadRequest', 'Invalid', 'Conflict', 'Forbidden'],
  example: {
    params: { namespace: 'svc-default', kind: 'vms', record: 'vm-cznfv' },
    body: example,
    response: { kind: 'vms', name: 'vm-cznfv', ...example, resourceVersion: '44' },
  },
})
