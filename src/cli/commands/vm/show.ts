// svc3 vm show
import { getVm, type Vm } from '../../../api/vms/vms.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { sizeCell } from '../../output/output.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'
import { arrivalText, bootText, pendingReason, verdictText } from './parts/reasons.ts'
import { vmArgument } from './parts/vm-argument.ts'

const fields: readonly Field<Vm>[] = [
  { label: 'Name', value: (vm) => vm.name },
  { label: 'Namespace', value: (vm) => vm.namespace },
  { label: 'Status', value: (vm) => vm.status },
  { label: 'Power', value: (vm) => vm.powerState },
  { label: 'Reason', value: pendingReason },
  { label: 'Booted', value: bootText },
  { label: 'Arriving', value: arrivalText },
  { label: 'Nodes', value: ({ nodes }) => nodes?.map(verdictText) },
  { label: 'Error', value: (vm) => vm.errorMessage },
  { label: 'Warning', value: (vm) => vm.warning?.split('\n') },
  { label: 'In progress', value: ({ operation }) => operation && `${operation.kind}: ${operation.phase}` },
  { label: 'Image', value: (vm) => vm.image },
  { label: 'Node', value: (vm) => vm.node },
  { label: 'IP', value: (vm) => vm.ip },
  { label: 'SSH port', value: (vm) => vm.ssh },
  { label: 'VNC port', value: (vm) => vm.vnc },
  { label: 'Screen sharing port', value: (vm) => vm.screenshare },
  {
    label: 'Other ports',
    value: (vm) => vm.reservedPorts.map((port) => `${port.nodePort} → ${port.vmPort}/${port.protocol}`),
  },
  { label: 'Port warnings', value: (vm) => vm.portWarnings },
  { label: 'CPU', value: (vm) => vm.cpu },
  { label: 'Memory', value: (vm) => sizeCell(vm.memory) },
  { label: 'Disk', value: (vm) => vm.diskGb && sizeCell(`${vm.diskGb}G`) },
  { label: 'GPU', value: (vm) => (vm.gpuPassthrough ? 'passed through' : undefined) },
  { label: 'Architecture', value: (vm) => vm.architecture },
  { label: 'Owner', value: (vm) => vm.owner },
  { label: 'Warm from pool', value: (vm) => vm.warm },
  { label: 'Requested', value: (vm) => (vm.status === 'Pending' ? { time: vm.deployDate } : undefined) },
  { label: 'Deployed', value: (vm) => (vm.status === 'Pending' ? undefined : { time: vm.deployDate }) },
  { label: 'Deleted at', value: (vm) => vm.expiresAt },
  { label: 'Labels', value: (vm) => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`) },
  { label: 'Metadata keys', value: (vm) => vm.metadataKeys.join(', ') },
]

export const command = defineCommand({
  arguments: vmArgument,
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm show demo', does: 'Show everything about a VM' },
    { line: 'svc3 vm show demo -o yaml', does: 'Show the record as the API returns it' },
  ],
  async run(context, { args }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, vm: args.vm }
    return printRecord(context, await client.call(getVm, { params, signal: context.signal }), fields)
  },
})
