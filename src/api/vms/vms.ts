// Virtual machines on the wire: deploy, look, power, resize, save, delete. Shapes as public clients send and read them.
import * as t from 'typebox'
import { architectures } from '../architecture.ts'
import { Status } from '../errors.ts'
import { Description, Name } from '../images/image-operations.ts'
import { Image } from '../images/images.ts'
import { inNamespace, listOperation, operation } from '../operation.ts'
import { Architecture, ExpectedVersion, Flag, ResourceVersion, Timestamp } from '../records.ts'
import { VmDeployment } from './vm-deployment.ts'

export const vmStatuses = ['Pending', 'Running', 'Failed'] as const
export const powerStates = ['pending', 'starting', 'running', 'stopped', 'suspended', 'failed', 'unknown'] as const

export const Condition = t.Object(
  {
    type: t.String({ description: 'What it is about, such as `Scheduled`' }),
    status: t.Enum(['True', 'False']),
    reason: t.String(),
    message: t.String(),
    at: Timestamp,
  },
  { title: 'Condition' },
)
export type Condition = t.Static<typeof Condition>

export const VmOperation = t.Object(
  {
    kind: t.String({ description: 'Such as `deploy`, `resize`, `revert`, `delete`' }),
    phase: t.String(),
    percent: t.Optional(t.Integer({ minimum: 0, maximum: 100 })),
  },
  { title: 'VmOperation' },
)
export type VmOperation = t.Static<typeof VmOperation>

export const ReservedPort = t.Object(
  { nodePort: t.Integer(), vmPort: t.Integer(), protocol: t.Enum(['tcp', 'udp']) },
  { title: 'ReservedPort' },
)

export const Vm = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    uid: t.String({ description: 'Another one when a VM of the same name is deployed again' }),
    status: t.Enum(vmStatuses, {
      description: 'A stopped or suspended Intel-based VM shows `Running`; `powerState` tells the truth',
    }),
    powerState: t.Enum(powerStates),
    node: t.Optional(t.String()),
    ip: t.Optional(t.String({ description: 'Where its ports are reached: the address of its node' })),
    ssh: t.Optional(t.Integer()),
    vnc: t.Optional(t.Integer()),
    screenshare: t.Optional(t.Integer()),
    reservedPorts: t.Array(ReservedPort),
    portWarnings: t.Optional(t.String()),
    cpu: t.Integer(),
    memory: t.String({ description: 'Such as `4.80Gi`; `auto` until a node is chosen' }),
    diskGb: t.Optional(t.Integer()),
    diskGeneration: t.Integer({ description: 'Grows with every revert: another one is another disk' }),
    image: t.String(),
    architecture: Architecture,
    type: t.Enum(architectures, { description: 'The same as architecture, for clients that read this' }),
    gpuPassthrough: t.Boolean(),
    owner: t.String(),
    deployDate: Timestamp,
    expiresAt: t.Optional(Timestamp),
    labels: t.Record(t.String(), t.String()),
    metadataKeys: t.Array(t.String(), { description: 'Values are read in the guest only' }),
    errorMessage: t.Optional(t.String()),
    warning: t.Optional(t.String({ description: 'Not a failure: what somebody should know or do' })),
    conditions: t.Array(Condition),
    operation: t.Optional(VmOperation),
    resourceVersion: ResourceVersion,
  },
  { title: 'Vm' },
)
export type Vm = t.Static<typeof Vm>

const saving = { description: t.Optional(Description), resourceVersion: ExpectedVersion }
export const vmCommands = ['start', 'stop', 'suspend', 'resume', 'revert'] as const

const DeployQuery = t.Object({ wait: t.Optional(t.Boolean({ description: '`false`: answer at once' })) })
const DeleteQuery = t.Object({
  force: Flag('Administrators: forget a VM whose node does not answer; it is removed there when the node is back'),
})
const LogsQuery = t.Object({
  follow: Flag('Go on as it writes more'),
  tail: t.Optional(t.Integer({ minimum: 0, maximum: 100_000, description: 'Only so many lines from the end' })),
})
const ConnectQuery = t.Object({
  port: t.Optional(t.String({ maxLength: 16, description: '`ssh` (default), `vnc`, `screenshare`' })),
})

const noun = 'vms'
const path = `${inNamespace}/vms` as const
const params = { namespace: 'svc-default', vm: 'vm-cznfv' }
const example = {
  name: 'vm-cznfv',
  namespace: 'svc-default',
  uid: '5b0c7c1e-3b43-4a0f-9d1a-1f1f5a3d7a11',
  status: 'Running',
  powerState: 'running',
  node: 'mini-arm-13',
  ip: '10.221.189.13',
  ssh: 8822,
  vnc: 5999,
  screenshare: 5900,
  reservedPorts: [],
  cpu: 3,
  memory: '4.80Gi',
  diskGb: 90,
  diskGeneration: 1,
  image: 'sonoma',
  architecture: 'arm64',
  type: 'arm64',
  gpuPassthrough: false,
  owner: 'ada@example.com',
  deployDate: '2026-11-15T09:00:00Z',
  labels: {},
  metadataKeys: [],
  conditions: [],
  resourceVersion: '42',
}

export const listVms = listOperation({
  id: 'listVms',
  noun,
  path,
  allow: 'dev',
  summary: 'List the VMs of a namespace',
  item: Vm,
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getVm = operation({
  id: 'getVm',
  noun,
  method: 'GET',
  path: `${path}/{vm}`,
  allow: 'dev',
  status: 200,
  summary: 'Show a VM',
  response: Vm,
  refuses: ['NotFound'],
  example: { params, response: example },
})

export const deployVm = operation({
  id: 'deployVm',
  noun,
  method: 'POST',
  path,
  allow: 'dev',
  status: 201,
  also: { 202: 'With `wait=false`: the VM is on its way' },
  summary: 'Deploy a VM',
  description:
    'Answers when the VM runs. One that fails or is not placed within `timeout` minutes leaves nothing behind. An image ' +
    'in a registry is looked at once, with the credentials of the namespace: a tag that moves later changes nothing.',
  involves: 'answer.name',
  tells: ['image', 'vmConfig'],
  query: DeployQuery,
  body: VmDeployment,
  response: Vm,
  refuses: ['NotFound', 'AlreadyExists', 'Invalid', 'Conflict', 'Timeout', 'ServiceUnavailable'],
  example: { params: { namespace: 'svc-default' }, body: { image: 'sonoma', cpu: 3 }, response: example },
})

export const deleteVm = operation({
  id: 'deleteVm',
  noun,
  method: 'DELETE',
  path: `${path}/{vm}`,
  allow: 'dev',
  status: 200,
  summary: 'Delete a VM and its disk',
  involves: 'params.vm',
  query: DeleteQuery,
  response: Status,
  refuses: ['NotFound', 'Forbidden', 'Timeout'],
  example: {
    params,
    response: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      message: 'vm "vm-cznfv" deleted from namespace "svc-default"',
      details: { name: 'vm-cznfv', kind: 'vms' },
      code: 200,
    },
  },
})

export const execVm = operation({
  id: 'execVm',
  noun,
  method: 'POST',
  path: `${path}/{vm}/exec`,
  allow: 'dev',
  status: 200,
  summary: 'Start, stop, suspend, resume or revert an Intel-based VM',
  description: 'Answers when it is done. Revert returns the disk to the latest state of the image: the rest is lost.',
  involves: 'params.vm',
  tells: ['command'],
  body: t.Object({ command: t.Enum(vmCommands), resourceVersion: ExpectedVersion }, { title: 'VmCommand' }),
  response: Vm,
  refuses: ['NotFound', 'Conflict', 'Invalid', 'Timeout'],
  example: {
    params,
    body: { command: 'stop' },
    response: { ...example, powerState: 'stopped', architecture: 'amd64', node: 'xeon-2' },
  },
})

export const resizeVm = operation({
  id: 'resizeVm',
  noun,
  method: 'POST',
  path: `${path}/{vm}/resize`,
  allow: 'dev',
  status: 200,
  summary: 'Enlarge the disk of a VM, and restart it',
  description:
    'Intel-based VMs: with `user` and `password` partition and file system are grown through SSH. When that does not ' +
    'work the disk is larger all the same, and `warning` tells how to go on by hand.',
  involves: 'params.vm',
  tells: ['size'],
  body: t.Object(
    {
      size: t.Number({ description: 'In GB, an integer, larger than now' }),
      user: t.Optional(t.String({ maxLength: 1024 })),
      password: t.Optional(t.String({ maxLength: 1024, writeOnly: true })),
      resourceVersion: ExpectedVersion,
    },
    { title: 'VmResize' },
  ),
  response: Vm,
  refuses: ['NotFound', 'Conflict', 'Invalid', 'Timeout'],
  example: { params, body: { size: 120 }, response: { ...example, diskGb: 120 } },
})

/** As it is until all of it is in the store. */
const updating = {
  name: 'sonoma-ci',
  description: 'With the tools of the build',
  type: 'arm64',
  size: '90G',
  state: 'Updating',
  progress: { percent: 0, bytes: 0 },
  owner: 'ada@example.com',
  source: 'vm-cznfv',
  sourceType: 'vm',
  sourceNamespace: 'svc-default',
  usedBy: [],
  lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
  resourceVersion: '43',
}

export const saveVm = operation({
  id: 'saveVm',
  noun,
  method: 'POST',
  path: `${path}/{vm}/save`,
  allow: 'dev',
  status: 202,
  summary: 'Save a running VM as a new image',
  description:
    'Disk and memory as they are in one moment; the VM goes on. The image is `Updating` until all of it is stored, ' +
    'then `Ready`, or `Failed` with the reason. A VM of the same shape that is deployed from it goes on from there.',
  involves: 'params.vm',
  tells: ['imageName'],
  body: t.Object({ imageName: Name, ...saving }, { title: 'VmSaving' }),
  response: Image,
  refuses: ['NotFound', 'AlreadyExists', 'Conflict', 'Invalid'],
  example: { params, body: { imageName: 'sonoma-ci', description: updating.description }, response: updating },
})

export const commitVm = operation({
  id: 'commitVm',
  noun,
  method: 'POST',
  path: `${path}/{vm}/commit`,
  allow: 'dev',
  status: 202,
  summary: 'Save a running VM into the image that it was deployed from',
  description:
    'A new version under the same name, once all of it is stored; if that fails, the image stays as it was. VMs that ' +
    'run on the old version keep it. Intel-based: refused while another VM uses the image.',
  involves: 'params.vm',
  bodyIsOptional: true,
  body: t.Object(saving, { title: 'VmCommit' }),
  response: Image,
  refuses: ['NotFound', 'Conflict', 'Invalid'],
  example: { params, body: { description: 'With the tools of the build' }, response: { ...updating, name: 'sonoma' } },
})

export const extendVm = operation({
  id: 'extendVm',
  noun,
  method: 'POST',
  path: `${path}/{vm}/extend`,
  allow: 'dev',
  status: 200,
  summary: 'Set when a VM ends by itself',
  involves: 'params.vm',
  tells: ['ttl'],
  body: t.Object({
    ttl: t.String({ maxLength: 64, description: 'From now, such as `2h`; `0` for never' }),
    resourceVersion: ExpectedVersion,
  }),
  response: Vm,
  refuses: ['NotFound', 'Invalid', 'Conflict', 'Forbidden'],
  example: { params, body: { ttl: '2h' }, response: { ...example, expiresAt: '2026-11-15T11:00:00Z' } },
})

export const getVmLogs = operation({
  id: 'getVmLogs',
  noun,
  method: 'GET',
  path: `${path}/{vm}/logs`,
  allow: 'dev',
  status: 200,
  summary: 'Show what a VM wrote to its serial console',
  query: LogsQuery,
  produces: 'text/plain; charset=utf-8',
  isStream: true,
  response: t.String(),
  refuses: ['NotFound', 'Conflict', 'ServiceUnavailable'],
  example: { params, response: 'tiny login:\n' },
})

export const connectVm = operation({
  id: 'connectVm',
  noun,
  method: 'GET',
  path: `${path}/{vm}/connect`,
  allow: 'dev',
  status: 101,
  summary: 'Open a connection to a port of a VM, through the service',
  description: 'A WebSocket whose binary messages are the bytes of the connection. Nodes need not be reachable.',
  query: ConnectQuery,
  isUpgrade: true,
  response: t.String(),
  refuses: ['NotFound', 'Conflict', 'ServiceUnavailable'],
  example: { params, response: '' },
})
