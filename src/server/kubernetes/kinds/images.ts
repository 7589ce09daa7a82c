// Image and Iso, which belong to the cluster and are the same in every namespace. An Image is created by saving a VM,
// copying, pulling or generating one: `sourceType` tells.
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
import { commitVm, saveVm } from '../../../api/vms/vms.ts'
import type { ImageRecord } from '../../../store/records/fleet-records.ts'
import {
  given,
  type Kind,
  type KubeObject,
  type ObjectInput,
  type ObjectView,
  type PlannedCall,
  type PrinterColumn,
  sameSpec,
} from './kind.ts'
import { annotationOf, archLabel, descriptionAnnotation, label, objectSpec, orka, stringOf, svc3Name } from './orka.ts'
import { column } from './vm-fields.ts'

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
    spec: given({
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
  given({ name: metadata.name, description: metadata.annotations[descriptionAnnotation] })
const source = (object: ObjectInput): string => String(objectSpec(object).source ?? '')

/** By `sourceType`. */
const imagePlans: Readonly<Record<string, Plan>> = {
  vm: (object) => {
    const { destination, sourceNamespace } = objectSpec(object)
    const { name, description } = names(object)
    const vm = { namespace: stringOf(sourceNamespace), params: { vm: source(object) } }
    return stringOf(destination) === undefined
      ? { ...vm, operation: commitVm, body: given({ description }) }
      : { ...vm, operation: saveVm, body: given({ imageName: name, description }) }
  },
  local: (object) => ({ operation: copyImage, params: { image: source(object) }, body: names(object) }),
  remote: (object) => ({
    operation: pullRemoteImage,
    params: { remoteimage: source(object) },
    body: names(object),
  }),
  generated: (object) => ({
    operation: generateImage,
    body: { ...names(object), size: String(objectSpec(object).size ?? '') },
  }),
}

const isoPlans: Readonly<Record<string, Plan>> = {
  local: (object) => ({ operation: copyIso, params: { iso: source(object) }, body: names(object) }),
  remote: (object) => ({ operation: pullRemoteIso, params: { remoteiso: source(object) }, body: names(object) }),
}

const planBy =
  (kind: string, plans: Readonly<Record<string, Plan>>): Plan =>
  (object) => {
    const asked = String(objectSpec(object).sourceType ?? '')
    const plan = Object.hasOwn(plans, asked) ? plans[asked] : undefined
    if (plan) return plan(object)
    const message = `spec.sourceType must be one of ${Object.keys(plans).join(', ')}; to upload a file, use the REST API`
    throw invalid(kind, [{ field: 'spec.sourceType', reason: 'FieldValueNotSupported', message }])
  }

/** Only the description can be changed. */
const describing = (operation: typeof describeImage | typeof describeIso, param: string) => ({
  operations: [operation],
  plan: (before: KubeObject, after: ObjectInput): readonly PlannedCall[] => {
    const [was, is] = [before, after].map(({ metadata }) => metadata.annotations[descriptionAnnotation] ?? '')
    if (was === is) return []
    return [{ operation, params: { [param]: before.metadata.name }, body: { description: is } }]
  },
  isAllowed: (before: KubeObject, after: ObjectInput): boolean => sameSpec(before, after),
})

const description: PrinterColumn = {
  name: 'Description',
  type: 'string',
  description: 'Description',
  cell: (object) => annotationOf(object, descriptionAnnotation),
}
const architecture: PrinterColumn = {
  name: 'Type',
  type: 'string',
  description: 'arm64 or amd64',
  cell: (object) => label(object, archLabel),
}
const size = column(['Size', 'string', 'spec.size'])
const state = column(['State', 'string', 'status.state'])
const error = column(['Error', 'string', 'status.errorMessage', true])

const shared = {
  ...orka,
  scope: 'shared',
  show,
  hasStatus: true,
  selectable: ['status.state'],
  computedAnnotations: [descriptionAnnotation],
} as const
const fieldPaths = {
  name: 'metadata.name',
  imageName: 'metadata.name',
  description: `metadata.annotations.${descriptionAnnotation}`,
}

export const kubeImageKind: Kind = {
  ...shared,
  kind: 'Image',
  plural: 'images',
  singular: 'image',
  keptAs: 'images',
  computedLabels: [archLabel],
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
    {
      name: 'Image-Id',
      type: 'string',
      description: 'Label orka.macstadium.com/image-id',
      cell: (object) => label(object, `${orka.group}/image-id`),
    },
    size,
    column(['Space-Used', 'string', 'spec.spaceUsed', true]),
    architecture,
    state,
    error,
  ],
  create: {
    operations: [copyImage, pullRemoteImage, generateImage, saveVm, commitVm],
    plan: planBy('images', imagePlans),
  },
  update: describing(describeImage, 'image'),
  remove: {
    operation: deleteImage,
    plan: ({ metadata }) => ({ operation: deleteImage, params: { image: metadata.name } }),
  },
  fieldPaths,
}

export const kubeIsoKind: Kind = {
  ...shared,
  kind: 'Iso',
  plural: 'isos',
  singular: 'iso',
  keptAs: 'isos',
  computedLabels: [archLabel],
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
  create: { operations: [copyIso, pullRemoteIso], plan: planBy('isos', isoPlans) },
  update: describing(describeIso, 'iso'),
  remove: {
    operation: deleteIso,
    plan: ({ metadata }) => ({ operation: deleteIso, params: { iso: metadata.name } }),
  },
  fieldPaths,
}
