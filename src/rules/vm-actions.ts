// Which action is allowed in which state of a VM, as a table (docs/spec.md R26–R41). The server enforces it, and the
// command line and the console show its texts.
import type { Architecture } from '../api/architecture.ts'
import { ApiError } from '../api/errors.ts'
import type { Vm } from '../api/vms/vms.ts'

type PowerState = Vm['powerState']
export type VmAction = 'start' | 'stop' | 'suspend' | 'resume' | 'revert' | 'resize' | 'save' | 'commit' | 'push'
type DesiredPower = 'running' | 'stopped' | 'suspended'

interface Row {
  /** Power operations and revert are for Intel-based VMs only (docs/spec.md R31). */
  readonly intelOnly: boolean
  /** Push is for Apple silicon-based VMs only (docs/spec.md R35). */
  readonly appleOnly?: true
  readonly from: readonly PowerState[]
  readonly to: DesiredPower
  /** The message for a VM in any other state. */
  readonly needs: string
}

const rows: Readonly<Record<VmAction, Row>> = {
  start: { intelOnly: true, from: ['stopped', 'failed'], to: 'running', needs: 'only a stopped VM can be started' },
  stop: { intelOnly: true, from: ['running'], to: 'stopped', needs: 'only a running VM can be stopped' },
  suspend: { intelOnly: true, from: ['running'], to: 'suspended', needs: 'only a running VM can be suspended' },
  resume: { intelOnly: true, from: ['suspended'], to: 'running', needs: 'only a suspended VM can be resumed' },
  revert: {
    intelOnly: true,
    from: ['running', 'stopped', 'suspended', 'failed'],
    to: 'running',
    needs: 'only a VM that has been deployed can be reverted',
  },
  resize: { intelOnly: false, from: ['running'], to: 'running', needs: 'only the disk of a running VM can be resized' },
  save: { intelOnly: false, from: ['running'], to: 'running', needs: 'only a running VM can be saved' },
  commit: { intelOnly: false, from: ['running'], to: 'running', needs: 'only a running VM can be committed' },
  push: {
    intelOnly: false,
    appleOnly: true,
    from: ['running'],
    to: 'running',
    needs: 'only a running VM can be pushed',
  },
}

/** What to do in a state in which the action is refused. */
const wayOn: Readonly<Partial<Record<PowerState, (vm: ActionSubject) => string>>> = {
  pending: (vm) => `Wait until it is running: svc3 vm list ${target(vm)}`,
  starting: (vm) => `Wait until it is running: svc3 vm list ${target(vm)}`,
  stopped: (vm) => `Start it: svc3 vm start ${target(vm)}`,
  suspended: (vm) => `Resume it: svc3 vm resume ${target(vm)}`,
  failed: (vm) => `Start it again (Intel): svc3 vm start ${target(vm)}; or delete it: svc3 vm delete ${target(vm)}`,
  unknown: ({ namespace }) => `Its node is not responding. Check it: svc3 node list -n ${namespace}`,
}

/** Names the namespace explicitly, so that the line works with any default. */
const target = ({ name, namespace }: ActionSubject): string => `${name} -n ${namespace}`

export const powerAfter = (action: VmAction): DesiredPower => rows[action].to

interface ActionSubject {
  readonly name: string
  readonly namespace: string
  readonly architecture: Architecture
  readonly powerState: PowerState
  /** The operation in progress, if any. */
  readonly busyWith?: string | undefined
}

/** Why the action is refused; undefined if it is allowed. Permanent reasons come first. */
export function refuseAction(action: VmAction, vm: ActionSubject): ApiError | undefined {
  const { intelOnly, appleOnly, from, to, needs } = rows[action]
  const about = { kind: 'vms', name: vm.name }
  if (intelOnly && vm.architecture !== 'amd64') {
    const message = `VM ${vm.name} is Apple silicon-based (arm64); ${action} is for Intel-based VMs only`
    return new ApiError('Invalid', message, {
      ...about,
      hint: 'Delete it and deploy another VM to start over',
      causes: [{ field: 'command', reason: 'FieldValueNotSupported', message }],
    })
  }
  if (appleOnly && vm.architecture !== 'arm64') {
    const message = `VM ${vm.name} is Intel-based (amd64); ${action} is for Apple silicon-based VMs only`
    return new ApiError('Invalid', message, {
      ...about,
      hint: `Save it as an image of the cluster: svc3 vm save ${vm.name} IMAGE -n ${vm.namespace}`,
      causes: [{ field: 'vm', reason: 'FieldValueNotSupported', message }],
    })
  }
  if (vm.busyWith !== undefined) {
    const message = `VM ${vm.name} is busy: ${vm.busyWith} in progress`
    return new ApiError('Conflict', message, { ...about, hint: `Wait until it finishes: svc3 vm list ${target(vm)}` })
  }
  if (from.includes(vm.powerState)) return undefined
  const way = vm.powerState === to ? undefined : wayOn[vm.powerState]
  const problem = way ? `is ${vm.powerState}; ${needs}` : `is already ${vm.powerState}`
  return new ApiError('Conflict', `VM ${vm.name} ${problem}`, { ...about, hint: way?.(vm) ?? 'Nothing was changed' })
}
