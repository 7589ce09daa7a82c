// The table columns of VMs.
import type { Vm } from '../../../../api/vms/vms.ts'
import { type OutputColumn, sizeCell } from '../../../output/output.ts'

/** A VM, or a deleted one in the output of a watch. */
type ShownVm = Omit<Vm, 'status'> & { readonly status: string }

export const columns: readonly OutputColumn<ShownVm>[] = [
  { header: 'NAME', keep: 'always', cell: (vm) => vm.name },
  { header: 'IP', keep: 'whole', cell: (vm) => vm.ip },
  { header: 'SSH', cell: (vm) => vm.ssh },
  { header: 'VNC', cell: (vm) => vm.vnc },
  { header: 'SCREENSHARE', cell: (vm) => vm.screenshare },
  { header: 'STATUS', keep: 'always', cell: (vm) => vm.status },
  { header: 'POWER', keep: 'whole', terminal: 'always', cell: (vm) => vm.powerState },
  { header: 'IMAGE', terminal: 'room', cell: (vm) => vm.image },
  { header: 'NODE', terminal: 'room', cell: (vm) => vm.node },
  { header: 'AGE', terminal: 'room', cell: (vm) => ({ time: vm.deployDate }) },
  { header: 'IMAGE', wide: true, cell: (vm) => vm.image },
  { header: 'CPU', wide: true, cell: (vm) => vm.cpu },
  { header: 'MEMORY', wide: true, cell: (vm) => sizeCell(vm.memory) },
  { header: 'NODE', wide: true, cell: (vm) => vm.node },
  { header: 'ARCHITECTURE', wide: true, cell: (vm) => vm.architecture },
  { header: 'POWER', wide: true, cell: (vm) => vm.powerState },
  { header: 'OWNER', wide: true, cell: (vm) => vm.owner },
  { header: 'DEPLOY-DATE', wide: true, cell: (vm) => ({ time: vm.deployDate }) },
]
