// Virtual machines, in the form that public clients send and read.
import * as t from 'typebox'
import { architectures } from '../architecture.ts'
import { Status, success } from '../errors.ts'
import { Description, imageFields, Name } from '../images/image-operations.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { Architecture, ExpectedVersion, Flag, Moment, ResourceVersion, Timestamp } from '../records.ts'
import { chartsOf, MeasuredQuery } from '../service/charts.ts'
import { VmDeployment } from './vm-deployment.ts'

export const vmStatuses = ['Pending', 'Running', 'Failed'] as const
export const powerStates = ['pending', 'starting', 'running', 'stopped', 'suspended', 'failed', 'unknown'] as const

export const Condition = t.Object(
  {
    type: t.String({ description: 'Type, such as `Scheduled`' }),
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
    kind: t.String({ description: 'Operation, such as `deploy`, `resize`, `revert`, `delete`' }),
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

/** Whether a node can take a VM, with the reason. */
export const NodeVerdict = t.Object(
  { name: t.String(), fits: t.Boolean(), reason: t.String() },
  { title: 'NodeVerdict' },
)

/** Whether a save or commit of a VM keeps its memory, as far as the service knows before the node captures the VM. */
const MemorySave = t.Object(
  {
    saved: t.Optional(t.Boolean({ description: 'Absent if the service cannot know' })),
    reason: t.Optional(t.String({ description: 'Why memory is not saved, or what it depends on' })),
  },
  { title: 'MemorySave' },
)
export type MemorySave = t.Static<typeof MemorySave>

export const Vm = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    uid: t.String({ description: 'Changes when a VM of the same name is deployed again' }),
    status: t.Enum(vmStatuses, {
      description: 'A stopped or suspended Intel-based VM shows `Running`; see `powerState`',
    }),
    powerState: t.Enum(powerStates),
    node: t.Optional(t.String()),
    ip: t.Optional(t.String({ description: 'Address of the node, where its ports are reachable' })),
    ssh: t.Optional(t.Integer()),
    vnc: t.Optional(t.Integer()),
    screenshare: t.Optional(t.Integer()),
    reservedPorts: t.Array(ReservedPort),
    portWarnings: t.Optional(t.String()),
    cpu: t.Integer(),
    memory: t.String({ description: 'Memory, such as `4.80Gi`; `auto` until placed' }),
    diskGb: t.Optional(t.Integer({ description: 'GiB' })),
    diskGeneration: t.Integer({ description: 'Number of the disk; grows with every revert' }),
    image: t.String(),
    architecture: Architecture,
    type: t.Enum(architectures, { description: 'Same as architecture, for older clients' }),
    gpuPassthrough: t.Boolean(),
    owner: t.String(),
    deployDate: Timestamp,
    timeline: t.Optional(
      t.Object(
        {
          requestedAt: Moment,
          placedAt: t.Optional(Moment),
          startedAt: t.Optional(Moment),
          bootedAt: t.Optional(Moment),
        },
        {
          title: 'VmTimeline',
          description: 'When the VM was requested, got a node or a warm VM, started, and first answered by SSH',
        },
      ),
    ),
    priority: t.Optional(t.Integer({ description: 'Among the VMs of its owner that wait; 0 if missing' })),
    expiresAt: t.Optional(Timestamp),
    labels: t.Record(t.String(), t.String()),
    metadataKeys: t.Array(t.String(), { description: 'Metadata keys; values are readable only in the guest' }),
    warm: t.Optional(t.String({ description: 'Pool that it came from; absent if it was deployed from its image' })),
    errorMessage: t.Optional(t.String()),
    warning: t.Optional(t.String({ description: 'Warning that is not a failure' })),
    conditions: t.Array(Condition),
    operation: t.Optional(VmOperation),
    memorySave: t.Optional(MemorySave),
    nodes: t.Optional(
      t.Array(NodeVerdict, {
        description: 'While it waits for a node, in `GET` of one VM: each node and why, up to 100',
      }),
    ),
    resourceVersion: ResourceVersion,
  },
  { title: 'Vm' },
)
export type Vm = t.Static<typeof Vm>

const vmCharts = ['cpu', 'memory', 'diskRead', 'diskWrite', 'networkIn', 'networkOut'] as const

const saving = { description: t.Optional(Description), resourceVersion: ExpectedVersion }
export const vmCommands = ['start', 'stop', 'suspend', 'resume', 'revert'] as const

const DeployQuery = t.Object({
  wait: t.Optional(t.Boolean({ description: '`false`: answer immediately' })),
  onQuota: t.Optional(
    t.Enum(['wait', 'refuse'], { description: 'Over the quota of the namespace: wait (default), or answer 403' }),
  ),
  onDisconnect: t.Optional(
    t.Enum(['keep', 'delete'], {
      description: 'If the caller disconnects: keep the VM (default), or delete it unless it runs within 90 s',
    }),
  ),
})
const DeleteQuery = t.Object({
  force: Flag('Administrators: remove a VM whose node is offline; the node deletes it later'),
})
const LogsQuery = t.Object({
  follow: Flag('Follow new output'),
  tail: t.Optional(t.Integer({ minimum: 0, maximum: 100_000, description: 'Number of lines from the end' })),
})
const ConnectQuery = t.Object({
  port: t.Optional(t.String({ maxLength: 16, description: '`ssh` (default), `vnc`, `screenshare`' })),
})

const noun = 'vms'
const operation = operationsOf({ noun, allow: 'dev', response: Vm })
const change = operationsOf({ noun, allow: 'dev', response: Vm, method: 'POST', involves: 'params.vm' })
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
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getVm = operation({
  id: 'getVm',
  method: 'GET',
  path: `${path}/{vm}`,
  summary: 'Show a VM',
  example: { params, response: example },
})

export const deployVm = operation({
  id: 'deployVm',
  method: 'POST',
  path,
  status: 201,
  also: { 202: 'With `wait=false`: the deploy started' },
  summary: 'Deploy a VM',
  description:
    'Answers when the VM runs. A VM that fails or does not start within `timeout` minutes is deleted. An image ' +
    'in a registry is resolved once, with the credentials of the namespace. Over the quota of the namespace it waits.',
  involves: 'answer.name',
  past: 'requested VM {name}',
  tells: ['image', 'vmConfig'],
  query: DeployQuery,
  body: VmDeployment,
  refuses: ['AlreadyExists', 'Forbidden', 'Invalid', 'Conflict', 'Timeout', 'ServiceUnavailable'],
  example: { params: { namespace: 'svc-default' }, body: { image: 'sonoma', cpu: 3 }, response: example },
})

export const deleteVm = operation({
  id: 'deleteVm',
  method: 'DELETE',
  path: `${path}/{vm}`,
  summary: 'Delete a VM and its disk',
  involves: 'params.vm',
  past: 'deleted VM {name}',
  query: DeleteQuery,
  response: Status,
  refuses: ['Forbidden', 'Timeout'],
  example: {
    params,
    response: success('VM vm-cznfv deleted from svc-default', { kind: 'vms', name: 'vm-cznfv' }),
  },
})

export const execVm = change({
  id: 'execVm',
  path: `${path}/{vm}/exec`,
  summary: 'Start, stop, suspend, resume or revert an Intel-based VM',
  description: 'Answers when done. Revert resets the disk to the image; changes are lost.',
  past: {
    start: 'started VM {name}',
    stop: 'stopped VM {name}',
    suspend: 'suspended VM {name}',
    resume: 'resumed VM {name}',
    revert: 'reverted VM {name} to its image',
  },
  body: t.Object({ command: t.Enum(vmCommands), resourceVersion: ExpectedVersion }, { title: 'VmCommand' }),
  refuses: ['Conflict', 'Invalid', 'Timeout'],
  example: {
    params,
    body: { command: 'stop' },
    response: { ...example, powerState: 'stopped', architecture: 'amd64', node: 'xeon-2' },
  },
})

export const resizeVm = change({
  id: 'resizeVm',
  path: `${path}/{vm}/resize`,
  summary: 'Enlarge the disk of a VM and restart it',
  description:
    'Intel-based VMs: with `user` and `password`, partition and file system grow over SSH. If that ' +
    'fails, the disk is larger, and `warning` says what to do. The current size with `user` and `password` grows only the ' +
    'file system, as needed after a revert. VMs on Apple silicon need no login: their guest agent grows the file system.',
  past: 'resized the disk of VM {name} to {size} GiB',
  body: t.Object(
    {
      size: t.Number({ description: 'New size in GiB, larger than the current size' }),
      user: t.Optional(t.String({ maxLength: 1024 })),
      password: t.Optional(t.String({ maxLength: 1024, writeOnly: true })),
      resourceVersion: ExpectedVersion,
    },
    { title: 'VmResize' },
  ),
  refuses: ['Conflict', 'Invalid', 'Timeout'],
  example: { params, body: { size: 120 }, response: { ...example, diskGb: 120 } },
})

/** An image that is being saved. */
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
  memory: { saved: false, reason: 'what a Mac keeps of a suspended VM fits that Mac only' },
}

const SavedImage = t.Object({ ...imageFields, memory: t.Optional(MemorySave) }, { title: 'SavedImage' })

const memoryRule =
  'Memory is saved on QEMU only, and not for macOS, for VMs that boot by UEFI or have an ISO in their drive, or under HVF on ' +
  'Macs. `memory` of the response, and `memorySave` of a running VM, say whether it is.'

export const saveVm = change({
  id: 'saveVm',
  path: `${path}/{vm}/save`,
  status: 202,
  summary: 'Save a running VM as a new image',
  description:
    'Disk and memory of one moment; the VM keeps running. The image is `Updating` until stored, ' +
    `then \`Ready\`, or \`Failed\` with the reason. A VM of the same shape resumes from there. ${memoryRule}`,
  past: 'started saving VM {name} as image {imageName}',
  body: t.Object({ imageName: Name, ...saving }, { title: 'VmSaving' }),
  response: SavedImage,
  refuses: ['AlreadyExists', 'Conflict', 'Invalid'],
  example: { params, body: { imageName: 'sonoma-ci', description: updating.description }, response: updating },
})

export const commitVm = change({
  id: 'commitVm',
  path: `${path}/{vm}/commit`,
  status: 202,
  summary: 'Save a running VM to the image that it was deployed from',
  description:
    'Creates a new version of the image; if that fails, the image is unchanged. VMs ' +
    'on the old version keep it. Intel-based: refused while another VM uses the image. For the owner of ' +
    `the image, people of the namespace it was made in, and administrators; a protected image only for administrators. ${memoryRule}`,
  past: 'started committing VM {name} to its image',
  bodyIsOptional: true,
  body: t.Object(saving, { title: 'VmCommit' }),
  response: SavedImage,
  refuses: ['Forbidden', 'Conflict', 'Invalid'],
  example: { params, body: { description: 'With the tools of the build' }, response: { ...updating, name: 'sonoma' } },
})

export const extendVm = change({
  id: 'extendVm',
  path: `${path}/{vm}/extend`,
  summary: 'Set the lifetime of a VM',
  past: 'set the TTL of VM {name} to {ttl}',
  body: t.Object({
    ttl: t.String({ maxLength: 64, description: 'Time from now, such as `2h`; `0` for no limit' }),
    resourceVersion: ExpectedVersion,
  }),
  refuses: ['Invalid', 'Conflict', 'Forbidden'],
  example: { params, body: { ttl: '2h' }, response: { ...example, expiresAt: '2026-11-15T11:00:00Z' } },
})

export const getVmLogs = operation({
  id: 'getVmLogs',
  method: 'GET',
  path: `${path}/{vm}/logs`,
  summary: 'Show the serial console output of a VM',
  query: LogsQuery,
  produces: 'text/plain; charset=utf-8',
  isStream: true,
  response: t.String(),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: { params, response: 'tiny login:\n' },
})

export const getVmCharts = operation({
  id: 'getVmCharts',
  method: 'GET',
  path: `${path}/{vm}/charts`,
  summary: 'Show what a VM uses: CPU, memory, disk, network',
  description:
    'As its node measures it from outside, for a day; nothing has to run in the guest. `cpu` is in percent of its cores. ' +
    'Empty where the driver of the node measures nothing.',
  isDerived: true,
  query: MeasuredQuery,
  response: chartsOf('VmCharts', vmCharts),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: {
    params,
    response: {
      stepSeconds: 10,
      series: [{ name: 'cpu', unit: '%', start: 1_763_200_800, values: [12.5, 99, null] }],
    },
  },
})

export const connectVm = operation({
  id: 'connectVm',
  method: 'GET',
  path: `${path}/{vm}/connect`,
  status: 101,
  summary: 'Open a connection to a port of a VM',
  description: 'A WebSocket that carries the bytes as binary messages. The node need not be reachable.',
  query: ConnectQuery,
  isUpgrade: true,
  response: t.String(),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: { params, response: '' },
})
