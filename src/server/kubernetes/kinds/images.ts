// Image and Iso, which belong to the cluster and are the same in every namespace. An Image is created by saving a VM,
// or by copying, pulling or generating an image; `spec.sourceType` says which.
import * as t from 'typebox'
import { invalid } from '../../../api/errors.ts'
import {
  copyImage,
  deleteImage,
  describeImage,
  generateImage,
  type Image,
  listImages,
} from '../../../api/images/images.ts'
import { copyIso, deleteIso, describeIso, listIsos } from '../../../api/images/isos.ts'
import { pullRemoteImage } from '../../../api/images/remote-images.ts'
import { pullRemoteIso } from '../../../api/images/remote-isos.ts'
import type { Operation } from '../../../api/operation.ts'
import { commitVm, saveVm } from '../../../api/vms/vms.ts'
import { defined } from '../../../platform/defined.ts'
import type { ImageRecord } from '../../../store/records/fleet-records.ts'
import { architecture, column, textColumn, wide } from './columns.ts'
import {
  callFor,
  defineKind,
  type KubeObject,
  type ObjectInput,
  type ObjectView,
  objectFields,
  type PlannedCall,
} from './kind.ts'
import { archLabel, descriptionAnnotation, nonEmptyText, orka, svc3Name } from './orka.ts'

const text = (description: string) => t.Optional(t.String({ maxLength: 512, description }))

const spec = {
  size: t.Optional(
    t.Union([t.String({ maxLength: 32 }), t.Number()], { description: 'Size of the disk, such as 90G' }),
  ),
  source: text('VM, image or remote image that it comes from'),
  sourceType: text('local: copy. remote: pull. vm: save or commit. generated: empty'),
}
const status = t.Object({
  state: t.String({ description: 'Ready, Updating or Failed' }),
  lastUpdatedTimestamp: t.String({ format: 'date-time' }),
  errorMessage: t.String(),
})

const show = (image: Image, record: ImageRecord): ObjectView => ({
  name: image.name,
  createdAt: record.createdAt,
  labels: { [archLabel]: image.type },
  annotations: {
    [descriptionAnnotation]: image.description,
    [svc3Name('progress')]: image.progress && `${image.progress.percent}%`,
    [svc3Name('warning')]: image.warning,
    [svc3Name('protected')]: image.protected === undefined ? undefined : String(image.protected),
    [svc3Name('version')]: image.version === undefined ? undefined : String(image.version),
    [svc3Name('used-by')]: image.usedBy.length === 0 ? undefined : image.usedBy.join(','),
  },
  body: {
    spec: defined({
      size: image.size,
      spaceUsed: image.spaceUsed,
      owner: image.owner,
      source: image.source,
      sourceNamespace: image.sourceNamespace,
      sourceType: image.sourceType,
      checksum: image.checksum,
    }),
    status: {
      state: image.state,
      lastUpdatedTimestamp: image.lastUpdatedTimestamp,
      errorMessage: image.errorMessage ?? '',
    },
  },
})

type Plan = (object: ObjectInput) => PlannedCall

const names = ({ metadata }: ObjectInput) =>
  defined({ name: metadata.name, description: metadata.annotations[descriptionAnnotation] })

/** Plans the operation on the record that `spec.source` names. */
const fromSource =
  (operation: Operation): Plan =>
  (object) => ({ ...callFor(operation, String(objectFields(object.spec).source ?? '')), body: names(object) })

function fromVm(object: ObjectInput): PlannedCall {
  const { destination, sourceNamespace } = objectFields(object.spec)
  const { name, ...rest } = names(object)
  const isNew = nonEmptyText(destination) !== undefined
  const call = fromSource(isNew ? saveVm : commitVm)(object)
  return { ...call, namespace: nonEmptyText(sourceNamespace), body: isNew ? { imageName: name, ...rest } : rest }
}

const empty: Plan = (object) => ({
  operation: generateImage,
  body: { ...names(object), size: String(objectFields(object.spec).size ?? '') },
})

/** Chooses the operation by `spec.sourceType`. */
const planBy =
  (kind: string, plans: Readonly<Record<string, Plan>>): Plan =>
  (object) => {
    const sourceType = String(objectFields(object.spec).sourceType ?? '')
    const plan = Object.hasOwn(plans, sourceType) ? plans[sourceType] : undefined
    if (plan) return plan(object)
    const message = `spec.sourceType must be one of ${Object.keys(plans).join(', ')}; to upload a file, use the REST API`
    throw invalid(kind, [{ field: 'spec.sourceType', reason: 'FieldValueNotSupported', message }])
  }

const descriptionOf = ({ metadata }: Pick<KubeObject, 'metadata'>): string =>
  metadata.annotations[descriptionAnnotation] ?? ''

const describing = (operation: Operation) => ({
  operations: [operation],
  plan: (before: KubeObject, after: ObjectInput): readonly PlannedCall[] =>
    descriptionOf(before) === descriptionOf(after)
      ? []
      : [{ ...callFor(operation, before.metadata.name), body: { description: descriptionOf(after) } }],
})

const description = textColumn('Description', 'Description', descriptionOf)
const imageIdLabel = `${orka.group}/image-id`
const size = column('Size', 'string', 'spec.size')
const state = column('State', 'string', 'status.state')
const error = wide('Error', 'string', 'status.errorMessage')

const shared = {
  ...orka,
  scope: 'shared',
  show,
  hasStatus: true,
  selectable: ['status.state'],
  computedLabels: [archLabel],
  computedAnnotations: [descriptionAnnotation],
  fieldPaths: {
    name: 'metadata.name',
    imageName: 'metadata.name',
    description: `metadata.annotations.${descriptionAnnotation}`,
  },
} as const
export const kubeImageKind = defineKind({
  ...shared,
  kind: 'Image',
  description: 'An image of the cluster, the same in every namespace',
  list: listImages,
  schema: {
    spec: t.Object({
      ...spec,
      spaceUsed: text('What it takes in the store, such as 12G'),
      owner: text('Who made it'),
      sourceNamespace: text('Namespace of the VM that is saved'),
      destination: text('With a VM as source: save it as a new image. Without: commit to its image'),
      checksum: text('SHA-256 of the content'),
    }),
    status,
  },
  columns: [
    description,
    textColumn('Image-Id', `Label ${imageIdLabel}`, ({ metadata }) => metadata.labels[imageIdLabel] ?? ''),
    size,
    wide('Space-Used', 'string', 'spec.spaceUsed'),
    architecture('Type'),
    state,
    error,
  ],
  create: {
    operations: [copyImage, pullRemoteImage, generateImage, saveVm, commitVm],
    plan: planBy('images', {
      vm: fromVm,
      local: fromSource(copyImage),
      remote: fromSource(pullRemoteImage),
      generated: empty,
    }),
  },
  update: describing(describeImage),
  remove: deleteImage,
})

export const kubeIsoKind = defineKind({
  ...shared,
  kind: 'Iso',
  description: 'An ISO of the cluster, the same in every namespace',
  list: listIsos,
  schema: {
    spec: t.Object({
      ...spec,
      spaceUsed: text('What it takes in the store'),
      owner: text('Who made it'),
      sourceNamespace: text('Namespace it was made in'),
      checksum: text('SHA-256 of the content'),
    }),
    status,
  },
  columns: [description, size, state, error],
  create: {
    operations: [copyIso, pullRemoteIso],
    plan: planBy('isos', { local: fromSource(copyIso), remote: fromSource(pullRemoteIso) }),
  },
  update: describing(describeIso),
  remove: deleteIso,
})
