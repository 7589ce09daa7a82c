// Whether a save or commit of a VM keeps its memory. Drivers decide it when they capture the VM; this says it before.
import type { Architecture } from '../api/architecture.ts'
import type { GuestSystem } from '../api/images/image-operations.ts'
import type { NodeReport } from '../api/nodes/node-report.ts'
import type { MemorySave } from '../api/vms/vms.ts'

export interface CapturedMachine {
  readonly architecture: Architecture
  readonly os?: GuestSystem | undefined
  readonly hasIso: boolean
  /** How the image boots; undefined if unknown. */
  readonly boot?: 'kernel' | 'bios' | 'uefi' | undefined
  /** The last report of the node that runs the VM. */
  readonly node?: Pick<NodeReport, 'driver' | 'driverVersion' | 'os' | 'architecture'> | undefined
}

const no = (reason: string): MemorySave => ({ saved: false, reason })
const depends = (reason: string): MemorySave => ({ reason })

/** QEMU uses the accelerator for guests of the host's architecture only. */
const usesHvf = ({ architecture, node }: CapturedMachine): boolean =>
  node?.architecture === architecture && (/\(hvf\b/.test(node.driverVersion) || node.os.startsWith('Darwin'))

/** The first row that applies. */
const rows: readonly (readonly [applies: (machine: CapturedMachine) => boolean, memory: MemorySave])[] = [
  [({ node }) => node === undefined, depends('that depends on its node, which has not reported yet')],
  [({ node }) => node?.driver === 'simulated', no('simulated VMs have none')],
  [({ node }) => node?.driver === 'apple', no('what a Mac keeps of a suspended VM fits that Mac only')],
  [({ node }) => node?.driver !== 'qemu', depends('that depends on the driver of its node')],
  [({ hasIso }) => hasIso, no('an ISO is in its drive')],
  [({ os }) => os === 'macos', no('macOS boots by UEFI, whose variables are a file of their own')],
  [usesHvf, no('macOS on the node does not let QEMU save it')],
  [({ boot }) => boot === 'uefi', no('it boots by UEFI, whose variables are a file of their own')],
  [
    ({ boot }) => boot === undefined,
    depends('that depends on the firmware of its image, which the service does not know: with UEFI, it is not'),
  ],
]

export const memorySaveOf = (machine: CapturedMachine): MemorySave =>
  rows.find(([applies]) => applies(machine))?.[1] ?? { saved: true }

/** For people; undefined if memory is saved. */
export function memorySaveText(vm: string, memory: MemorySave | undefined): string | undefined {
  if (!memory || memory.saved === true) return undefined
  const { saved, reason } = memory
  const what = `The memory of VM ${vm} ${saved === false ? 'will not' : 'may not'} be saved: ${reason}`
  return `${what}. ${saved === false ? '' : 'Without memory, '}VMs deployed from the image boot from its disk`
}
