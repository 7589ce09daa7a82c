// ISOs. They belong to the cluster, so every namespace has the same ones.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { CopyInput, DescriptionInput, imageFields, uploadFields } from './image-operations.ts'

export const Iso = t.Object(imageFields, { title: 'Iso' })
export type Iso = t.Static<typeof Iso>

const noun = 'isos'
const operation = operationsOf({ noun, allow: 'dev', response: Iso })
const path = `${inNamespace}/isos` as const
const params = { namespace: 'svc-default', iso: 'ventura.iso' }
const example = {
  name: 'ventura.iso',
  description: 'An installer',
  type: 'amd64',
  size: '1G',
  state: 'Ready',
  owner: 'svc3',
  source: 'upload',
  sourceType: 'userUpload',
  usedBy: ['svc-default/vm-cznfv'],
  lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
  resourceVersion: '7',
}

export const listIsos = listOperation({
  id: 'listIsos',
  noun,
  path,
  allow: 'dev',
  summary: 'List the ISOs of the cluster',
  item: Iso,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getIso = operation({
  id: 'getIso',
  method: 'GET',
  path: `${path}/{iso}`,
  summary: 'Show an ISO',
  isDerived: true,
  example: { params, response: example },
})

export const copyIso = operation({
  id: 'copyIso',
  method: 'POST',
  path: `${path}/{iso}/copy`,
  status: 202,
  summary: 'Copy an ISO',
  involves: 'answer.name',
  past: 'copied ISO {iso} to {name}',
  body: CopyInput,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: { params, body: { name: 'another' }, response: { ...example, name: 'another', usedBy: [] } },
})

export const describeIso = operation({
  id: 'describeIso',
  method: 'POST',
  path: `${path}/{iso}/description`,
  summary: 'Change the description of an ISO',
  description: 'For its owner, people of the namespace it was made in, and administrators.',
  involves: 'params.iso',
  past: 'changed the description of ISO {name}',
  tells: ['description'],
  mayRepeat: true,
  body: DescriptionInput,
  refuses: ['Forbidden', 'Conflict'],
  example: { params, body: { description: 'For releases' }, response: { ...example, description: 'For releases' } },
})

export const deleteIso = operation({
  id: 'deleteIso',
  method: 'DELETE',
  path: `${path}/{iso}`,
  summary: 'Delete an ISO',
  description:
    'For its owner, people of the namespace it was made in, and administrators. Refused while VMs use it. Unused ' +
    'content is deleted later.',
  involves: 'params.iso',
  past: 'deleted ISO {name}',
  response: Status,
  refuses: ['Forbidden', 'Conflict'],
  example: {
    params,
    response: success('ISO "ventura.iso" deleted', { name: 'ventura.iso', kind: 'isos' }),
  },
})

export const downloadIso = operation({
  id: 'downloadIso',
  method: 'GET',
  path: `${path}/{iso}/download`,
  also: { 206: 'The requested range' },
  summary: 'Download an ISO',
  produces: 'application/octet-stream',
  isDownload: true,
  response: t.String(),
  refuses: ['Conflict', 'RangeNotSatisfiable'],
  example: { params, response: '' },
})

export const uploadIso = operation({
  id: 'uploadIso',
  method: 'POST',
  path: `${inNamespace}/upload/iso`,
  status: 201,
  summary: 'Upload an ISO',
  description:
    'A form with the part `iso` (named by its file name or the field `name`), or the ' +
    'bytes themselves with `?name=`. ISO 9660, UDF, or an installer of Apple.',
  involves: 'answer.name',
  past: 'uploaded ISO {name}',
  query: t.Object(uploadFields),
  isUpload: 'iso',
  refuses: ['AlreadyExists', 'Invalid', 'Conflict', 'RequestEntityTooLarge'],
  example: { params: { namespace: 'svc-default' }, response: { ...example, sourceType: 'userUpload', usedBy: [] } },
})
