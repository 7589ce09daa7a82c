// VirtualMachineInstance: a VM. Creating one deploys it and does not wait. Conditions and annotations show what Orka's
// kind has no field for.
import * as t from 'typebox'
import { setMetadata } from '../../../api/service/metadata.ts'
import { deleteVm, deployVm, listVms, type Vm } from '../../../api/vms/vms.ts'
import { defined } from '../../../platform/defined.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { isDeleted } from '../../../store/records/vms.ts'
import { architecture, column, owner, wide } from './columns.ts'
import { creation, defineKind, type ObjectFields, type ObjectInput, type ObjectView, objectFields } from './kind.ts'
import { archLabel, configLabel, creatorAnnotation, nonEmptyText, orka, svc3Name } from './orka.ts'
import { shapeFieldPaths, shapeInput, shapeSchema, shapeSpec } from './vm-fields.ts'

const Condition = t.Object({
  type: t.String({ description: 'Ready, or a condition of the REST API such as Scheduled' }),
  status: t.String({ description: 'True or False' }),
  reason: t.String(),
  message: t.String(),
  lastTransitionTime: t.String({ format: 'date-time' }),
})

const schema = {
  spec: t.Object(
    {
      ...shapeSchema,
      reservedPorts: t.Optional(t.String({ maxLength: 2_048, description: 'Ports as NODE:VM,NODE:VM' })),
      customVMMetadata: t.Optional(
        t.Record(t.String(), t.String(), {
          description: 'Metadata for the guest. Sealed: it is not shown again',
        }),
      ),
    },
    { description: 'What to deploy. Cannot be changed' },
  ),
  status: t.Object(
    {
      phase: t.String({ description: 'Pending, Running or Failed' }),
      memory: t.String({ description: 'Memory, such as 4.80Gi; empty until placed' }),
      nodeName: t.String(),
      hostIP: t.String({ description: 'Address of the node, where the ports are reachable' }),
      ip: t.String(),
      sshPort: t.Optional(t.Integer()),
      vncPort: t.Optional(t.Integer()),
      screenSharePort: t.Optional(t.Integer()),
      portWarnings: t.String(),
      startTime: t.Integer({ description: 'When it was deployed, in seconds since 1970' }),
      errorMessage: t.String(),
      conditions: t.Array(Condition),
    },
    { description: 'What became of it' },
  ),
}

function show(vm: Vm, record: VmRecord): ObjectView {
  const { ssh, ip = '' } = vm
  // Clients expect a running VM to have its SSH port.
  const phase = vm.status === 'Running' && ssh === undefined ? 'Pending' : vm.status
  const isReady = phase === 'Running' && vm.powerState === 'running'
  return {
    name: vm.name,
    namespace: vm.namespace,
    uid: vm.uid,
    createdAt: vm.deployDate,
    deletedAt: isDeleted(record) ? (record.deletedAt ?? vm.deployDate) : undefined,
    labels: { ...vm.labels, [archLabel]: vm.architecture },
    annotations: {
      [creatorAnnotation]: vm.owner,
      [svc3Name('power-state')]: vm.powerState,
      [svc3Name('expires-at')]: vm.expiresAt,
      [svc3Name('priority')]: vm.priority === undefined ? undefined : String(vm.priority),
      [svc3Name('disk-gb')]: vm.diskGb === undefined ? undefined : String(vm.diskGb),
      [svc3Name('operation')]: vm.operation && `${vm.operation.kind}: ${vm.operation.phase}`,
      [svc3Name('warning')]: vm.warning,
      [svc3Name('pool')]: vm.warm,
      [svc3Name('metadata-keys')]: vm.metadataKeys.length === 0 ? undefined : vm.metadataKeys.join(','),
    },
    body: {
      spec: { ...shapeSpec(record.shape), ...reserved(vm) },
      status: {
        phase,
        memory: vm.memory === 'auto' ? '' : vm.memory,
        nodeName: vm.node ?? '',
        hostIP: ip,
        ip,
        ...defined({ sshPort: ssh, vncPort: vm.vnc, screenSharePort: vm.screenshare }),
        portWarnings: vm.portWarnings ?? '',
        startTime: Math.floor(Date.parse(vm.deployDate) / 1_000),
        errorMessage: vm.errorMessage ?? '',
        conditions: [
          {
            type: 'Ready',
            status: isReady ? 'True' : 'False',
            reason: isReady ? 'Running' : phase === 'Running' ? vm.powerState : phase,
            message: vm.errorMessage ?? '',
            lastTransitionTime: vm.conditions.at(-1)?.at ?? vm.deployDate,
          },
          ...vm.conditions.map(({ at, ...condition }) => ({ ...condition, lastTransitionTime: at })),
        ],
      },
    },
  }
}

const reserved = ({ reservedPorts }: Vm): ObjectFields =>
  reservedPorts.length === 0
    ? {}
    : {
        reservedPorts: reservedPorts
          .map(({ nodePort, vmPort, protocol }) => `${nodePort}:${vmPort}${protocol === 'udp' ? '/udp' : ''}`)
          .join(','),
      }

function plan({ metadata, spec }: ObjectInput) {
  const { [archLabel]: _, ...labels } = metadata.labels
  const { reservedPorts, customVMMetadata, ...shape } = objectFields(spec)
  const priority = metadata.annotations[svc3Name('priority')]
  return {
    query: { wait: false },
    body: defined({
      name: metadata.name,
      vmConfig: nonEmptyText(labels[configLabel]),
      ...shapeInput(shape),
      reservedPorts: nonEmptyText(reservedPorts),
      customVMMetadata: customVMMetadata === undefined ? undefined : objectFields(customVMMetadata),
      labels,
      ttl: nonEmptyText(metadata.annotations[svc3Name('ttl')]),
      // A text that is not a number is left for the schema of the operation to refuse.
      priority: priority === undefined || Number.isNaN(Number(priority)) ? priority : Number(priority),
    }),
  }
}

export const vmKind = defineKind({
  ...orka,
  kind: 'VirtualMachineInstance',
  shortNames: ['vm', 'vms'],
  description: 'A VM. Creating one deploys it; deleting it deletes the VM and its disk',
  scope: 'namespace',
  computedLabels: [archLabel],
  list: listVms,
  show,
  schema,
  hasStatus: true,
  selectable: ['status.phase', 'status.nodeName', 'spec.image'],
  columns: [
    column('IP', 'string', 'status.ip'),
    column('SSH', 'integer', 'status.sshPort'),
    column('VNC', 'integer', 'status.vncPort'),
    column('Screenshare', 'integer', 'status.screenSharePort'),
    column('Status', 'string', 'status.phase'),
    wide('Image', 'string', 'spec.image'),
    wide('CPU', 'integer', 'spec.cpu'),
    wide('Memory', 'string', 'status.memory'),
    wide('Node', 'string', 'status.nodeName'),
    architecture('Architecture', true),
    wide('Reserved-Ports', 'string', 'spec.reservedPorts'),
    wide('GPU-Passthrough', 'boolean', 'spec.gpuPassthrough'),
    owner,
    wide('Deploy-Date', 'date', 'metadata.creationTimestamp'),
    wide('Display-Width', 'integer', 'spec.displayWidth'),
    wide('Display-Height', 'integer', 'spec.displayHeight'),
    wide('Display-DPI', 'integer', 'spec.displayDPI'),
  ],
  create: creation(deployVm, plan),
  update: { operations: [setMetadata] },
  remove: deleteVm,
  fieldPaths: {
    ...shapeFieldPaths,
    ttl: `metadata.annotations.${svc3Name('ttl')}`,
    priority: `metadata.annotations.${svc3Name('priority')}`,
  },
})
