// Converts the desired state of a VM into the spec for its driver.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { DesiredVm } from '../../api/nodes/agent.ts'
import { machineOf, randomSerial } from '../../api/vms/vm-shape.ts'
import type { BaseImage, Forward, VmSpec } from '../../drivers/driver.ts'
import type { StoredDesired } from '../state/handles.ts'

const gib = 2 ** 30
const guestPorts = { ssh: 22, screenshare: 5900 } as const

/** Sizes in the API are in whole GiB, rounded up. */
export const diskGbOf = (bytes: number): number => Math.ceil(bytes / gib)
export const bytesOf = (diskGb: number): number => diskGb * gib

export const portsOf = ({ ssh, vnc, screenshare, reservedPorts }: StoredDesired): number[] =>
  [ssh, vnc, screenshare, ...reservedPorts.map(({ nodePort }) => nodePort)].filter((port) => port !== undefined)

/** `iso` is the path of the file. */
export function driverSpec(vm: DesiredVm, image: BaseImage, iso?: string): VmSpec {
  if (vm.gpuPassthrough) throw new Error('this node has no GPU to pass through; deploy it without gpuPassthrough')
  // A VM that took over a slot keeps the slot's network cards and serial number.
  const uid = vm.slot ?? vm.uid
  const { name, architecture, cpu, memoryMiB, ip, display, metadata, facts, userdata } = vm
  const { gpuPassthrough: _, iso: __, systemSerial, ...machine } = machineOf(vm)
  const isLarger = vm.diskGb !== undefined && vm.diskGb > diskGbOf(image.virtualSizeBytes)
  return {
    uid,
    name,
    architecture,
    cpu,
    memoryMiB,
    image,
    ip,
    forwards: forwardsOf(vm),
    metadata,
    facts,
    ...machine,
    ...(isLarger && vm.diskGb !== undefined && { diskBytes: bytesOf(vm.diskGb) }),
    ...(vm.vnc !== undefined && { screen: { port: vm.vnc, width: display.width, height: display.height } }),
    ...(userdata !== undefined && { userdata }),
    ...(systemSerial !== undefined && { systemSerial: systemSerial === randomSerial ? ownSerial(uid) : systemSerial }),
    ...(iso !== undefined && { iso }),
    ...(vm.isCold && { isCold: true }),
  }
}

/** Twelve letters and digits, as on many Macs, and the same at every start. */
const ownSerial = (uid: string): string =>
  createHash('sha256').update(`${uid}/serial`).digest('hex').slice(0, 12).toUpperCase()

const forwardsOf = ({ ssh, screenshare, reservedPorts }: DesiredVm): Forward[] => [
  { protocol: 'tcp', hostPort: ssh, guestPort: guestPorts.ssh },
  ...(screenshare === undefined
    ? []
    : [{ protocol: 'tcp', hostPort: screenshare, guestPort: guestPorts.screenshare } as const]),
  ...reservedPorts.map(({ nodePort, vmPort, protocol }) => ({ protocol, hostPort: nodePort, guestPort: vmPort })),
]

/** An ISO that an administrator has put into the folder. Names come from users, so only plain file names are accepted. */
export async function isoFile(folder: string, name: string): Promise<string> {
  const file = path.join(folder, name)
  const isPlain = path.basename(name) === name && !name.startsWith('.') && !name.includes('\0')
  const stat = isPlain ? await fs.lstat(file).catch(() => undefined) : undefined
  if (stat?.isFile()) return file
  throw new Error(`the ISO "${name}" is not on this node; put it into ${folder}, or deploy without it`)
}
