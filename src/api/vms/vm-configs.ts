// VM configurations: named sets of deployment values.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { Architecture, ExpectedVersion, ResourceVersion, Timestamp } from '../records.ts'
import { machineDefaults, machineFields, vmShapeFields } from './vm-shape.ts'

const { iso, ...machine } = machineFields

export const VmConfig = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    image: t.String(),
    type: Architecture,
    cpu: t.Integer(),
    memory: t.Number({ description: 'GiB; 0 is automatic' }),
    iso,
    vncConsole: t.Boolean(),
    ...machine,
    tag: t.Optional(t.String()),
    tagRequired: t.Boolean(),
    scheduler: t.String(),
    node: t.Optional(t.String()),
    nodeName: t.Optional(t.String({ description: 'Same as node, for older clients' })),
    displayWidth: t.Integer(),
    displayHeight: t.Integer(),
    displayDPI: t.Integer(),
    owner: t.String(),
    createdAt: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'VmConfig' },
)
export type VmConfig = t.Static<typeof VmConfig>

const values = {
  image: t.String({ maxLength: 512 }),
  type: t.Optional(t.String({ maxLength: 16, description: 'Default: the type of the image' })),
  ...vmShapeFields,
}

export const VmConfigInput = t.Object({ name: t.String({ maxLength: 256 }), ...values }, { title: 'VmConfigInput' })
export type VmConfigInput = t.Static<typeof VmConfigInput>

export const VmConfigUpdate = t.Object({ ...values, resourceVersion: ExpectedVersion }, { title: 'VmConfigUpdate' })
export type VmConfigUpdate = t.Static<typeof VmConfigUpdate>

const noun = 'vm-configs'
const operation = operationsOf({ noun, allow: 'dev', response: VmConfig })
const path = `${inNamespace}/vmconfigs` as const
const params = { namespace: 'svc-default', vmconfig: 'ios-build' }
const example = {
  name: 'ios-build',
  namespace: 'svc-default',
  image: 'sonoma',
  type: 'arm64',
  cpu: 4,
  memory: 8,
  vncConsole: true,
  ...machineDefaults,
  tagRequired: false,
  scheduler: 'default',
  displayWidth: 1920,
  displayHeight: 1080,
  displayDPI: 96,
  owner: 'ada@example.com',
  createdAt: '2026-11-15T09:00:00Z',
  resourceVersion: '40',
}

export const listVmConfigs = listOperation({
  id: 'listVmConfigs',
  noun,
  path,
  allow: 'dev',
  summary: 'List the VM configurations of a namespace',
  item: VmConfig,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getVmConfig = operation({
  id: 'getVmConfig',
  method: 'GET',
  path: `${path}/{vmconfig}`,
  summary: 'Show a VM configuration',
  example: { params, response: example },
})

export const createVmConfig = operation({
  id: 'createVmConfig',
  method: 'POST',
  path,
  status: 201,
  summary: 'Create a VM configuration',
  involves: 'body.name',
  past: 'created VM configuration {name}',
  body: VmConfigInput,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params: { namespace: 'svc-default' },
    body: { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8 },
    response: example,
  },
})

export const updateVmConfig = operation({
  id: 'updateVmConfig',
  method: 'PUT',
  path: `${path}/{vmconfig}`,
  summary: 'Replace the values of a VM configuration',
  description: 'Omitted fields get their defaults. VMs deployed from it stay as they are.',
  involves: 'params.vmconfig',
  past: 'changed VM configuration {name}',
  isIdempotent: true,
  body: VmConfigUpdate,
  refuses: ['Invalid', 'Conflict', 'Forbidden'],
  example: { params, body: { image: 'sonoma', cpu: 4, memory: 8 }, response: example },
})

export const deleteVmConfig = operation({
  id: 'deleteVmConfig',
  method: 'DELETE',
  path: `${path}/{vmconfig}`,
  summary: 'Delete a VM configuration',
  description: 'VMs deployed from it stay.',
  involves: 'params.vmconfig',
  past: 'deleted VM configuration {name}',
  response: Status,
  refuses: ['Forbidden'],
  example: {
    params,
    response: success('VM configuration ios-build deleted from svc-default', { kind: 'vmconfigs', name: 'ios-build' }),
  },
})
