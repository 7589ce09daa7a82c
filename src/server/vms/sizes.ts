// Which sizes a disk may grow to, and the message after it grew (docs/spec.md R41–R44).
import { ApiError, type Cause, invalid, invalidField } from '../../api/errors.ts'
import type { Vm } from '../../api/vms/vms.ts'
import type { NodeRecord, VmRecord } from '../../store/records/fleet-records.ts'

const kind = 'vms'
const maxGb = 65_536

export interface ResizeInput {
  readonly size: number
  readonly user?: string | undefined
  readonly password?: string | undefined
}

export function checkSize(vm: VmRecord, { size, user, password }: ResizeInput, node: NodeRecord | undefined): void {
  const nowGb = vm.observed.diskGb
  const isArm = vm.shape.architecture === 'arm64'
  const isSame = size === nowGb
  // A revert keeps the size of the disk but brings back the smaller file system of the image.
  const isForGuest = isSame && !isArm && user !== undefined && password !== undefined
  const problems: readonly (readonly [field: string, isWrong: boolean, message: string])[] = [
    ['size', !Number.isInteger(size), `size must be a whole number of GiB, not ${size}`],
    ['size', size < 1, `size must be at least 1 GiB`],
    ['size', size > maxGb, `size must be at most ${maxGb} GiB`],
    [
      'size',
      nowGb !== undefined && size <= nowGb && !isForGuest,
      `The disk of VM ${vm.name} is already ${nowGb} GiB; choose a larger size`,
    ],
    ['user', isArm && user !== undefined, 'user is for Intel-based VMs only; this VM grows its file system without it'],
    [
      'password',
      !isArm && (user === undefined) !== (password === undefined),
      'user and password must be given together',
    ],
  ]
  const causes = problems
    .filter(([, isWrong]) => isWrong)
    .map(([field, , message]): Cause => invalidField(field, message))
  const isAboutSize = causes.some(({ field }) => field === 'size')
  const line = (words: string): string => `svc3 vm resize ${vm.name} ${words} -n ${vm.namespace}`
  const inside = `To grow only the file system in it: ${line(`${size} --user USER --password-stdin`)}`
  const example = isSame && !isArm ? inside : `For example: ${line(`${(nowGb ?? 0) + 10}`)}`
  const hint = isAboutSize ? example : 'Give both, or neither'
  if (causes.length > 0) throw invalid(kind, causes, hint)
  if (nowGb === undefined)
    throw new ApiError('Conflict', `The disk size of VM ${vm.name} is not known yet`, {
      kind,
      name: vm.name,
      hint: 'Try again when its node has reported it',
    })
  const freeGb = node?.report?.diskFreeGb
  if (freeGb === undefined || size - nowGb <= freeGb) return
  const message = `Node ${node?.name} has ${freeGb} GiB free; growing the disk of VM ${vm.name} to ${size} GiB needs up to ${size - nowGb} GiB`
  throw new ApiError('Conflict', message, {
    kind,
    name: vm.name,
    hint: 'Free space on the node, or choose a smaller size',
  })
}

/** Without credentials, only the disk of an Intel VM has grown. */
export function resizeNote(vm: Vm, hadLogin: boolean): Vm {
  if (vm.architecture === 'arm64' || hadLogin || vm.warning !== undefined) return vm
  return { ...vm, warning: `The disk is now ${vm.diskGb} GiB. ${growByHand}` }
}

const growByHand =
  'Grow the partition in the guest: on macOS "diskutil repairDisk disk0" and "diskutil apfs resizeContainer disk0s2 0", ' +
  'on Linux "growpart /dev/vda 1" and "resize2fs /dev/vda1"'
