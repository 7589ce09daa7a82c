// Which sizes a disk may grow to, and the message after it grew (docs/spec.md R41–R44).
import { ApiError, type Cause, invalid } from '../../api/errors.ts'
import type { Vm } from '../../api/vms/vms.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'

const kind = 'vms'
/** 64 TiB. */
const largestGb = 65_536

interface Asked {
  readonly size: number
  readonly user?: string | undefined
  readonly password?: string | undefined
}

export function checkSize(vm: VmRecord, { size, user, password }: Asked, node: NodeRecord | undefined): void {
  const nowGb = vm.observed.diskGb
  const isArm = vm.shape.architecture === 'arm64'
  const problems: readonly (readonly [field: string, isWrong: boolean, message: string])[] = [
    ['size', !Number.isInteger(size), `size ${size} is not a whole number of GB`],
    ['size', size < 1, `size ${size} is not more than 0`],
    ['size', size > largestGb, `size ${size} is more than ${largestGb} GB`],
    [
      'size',
      nowGb !== undefined && size <= nowGb,
      `the disk of vm "${vm.name}" has ${nowGb} GB, and ${size} is not more: disks only grow`,
    ],
    [
      'user',
      isArm && user !== undefined,
      'user is for Intel-based VMs only: this one needs nothing more after it has grown',
    ],
    ['password', !isArm && (user === undefined) !== (password === undefined), 'user and password go together'],
  ]
  const causes = problems
    .filter(([, isWrong]) => isWrong)
    .map(([field, , message]): Cause => ({ field, reason: 'FieldValueInvalid', message }))
  const isAboutSize = causes.some(({ field }) => field === 'size')
  const hint = isAboutSize ? 'give a whole number of GB that is larger than now' : 'leave them out, or give both'
  if (causes.length > 0) throw invalid(kind, causes, hint)
  if (nowGb === undefined)
    throw new ApiError('Conflict', `the size of the disk of vm "${vm.name}" is not known yet`, {
      kind,
      name: vm.name,
      hint: 'wait until its node has reported it',
    })
  const freeGb = node?.report?.diskFreeGb
  if (freeGb === undefined || size - nowGb <= freeGb) return
  const message = `node "${node?.name}" has ${freeGb} GB free, and growing the disk of vm "${vm.name}" to ${size} GB may need ${size - nowGb}`
  throw new ApiError('Conflict', message, { kind, name: vm.name, hint: 'free space on the node, or ask for less' })
}

/** Intel without credentials: the disk has grown, and the rest is done by hand. */
export function resizeNote(vm: Vm, hadLogin: boolean): Vm {
  if (vm.architecture === 'arm64' || hadLogin || vm.warning !== undefined) return vm
  return { ...vm, warning: `the disk has ${vm.diskGb} GB now; ${byHand}` }
}

const byHand =
  'grow the partition in the guest: on macOS "diskutil repairDisk disk0" and "diskutil apfs resizeContainer disk0s2 0", ' +
  'on Linux "growpart /dev/vda 1" and "resize2fs /dev/vda1"'
