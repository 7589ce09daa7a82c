// Prepares the start of a VM: QEMU's command line, its ports, and whether it can resume from memory.
import fs from 'node:fs/promises'
import type { VmSpec } from '../driver.ts'
import { acceleratorFor } from './accel.ts'
import { qemuArguments } from './arguments.ts'
import { parkedMemory, readParked } from './captures/parked.ts'
import { runtimeFolder } from './control/run.ts'
import { readChain } from './disks/chain.ts'
import { diskBytes, diskNodeOn } from './disks/disks.ts'
import { mergeFrozen } from './disks/merge.ts'
import { defaultFirmware, prepareUefi } from './firmware.ts'
import { isMacos, type MacosSettings, requireMacos } from './macos.ts'
import { type NetworkKind, type PortAccess, portAccessOf } from './network/network.ts'
import { difference, type MachineShape, machineShape } from './shape.ts'

export interface VmOptions {
  readonly network: NetworkKind
  readonly macos?: MacosSettings
  /** Throws if guests cannot have that network here. */
  requireNetwork(): Promise<void>
}

export interface QemuLaunch {
  readonly runtime: string
  readonly command: readonly string[]
  readonly doors: PortAccess
  /** QEMU reads it from a file when it starts. */
  readonly smcKey?: string | undefined
  /** Undefined if it could not be determined: memory of such a VM can be neither saved nor resumed. */
  readonly shape: MachineShape | undefined
  /** The memory file to resume from. */
  readonly memory?: string
  /** Why existing memory is not used. */
  readonly note?: string
}

export async function planLaunch(
  folder: string,
  vm: VmSpec,
  { network, macos: settings }: VmOptions,
  signal: AbortSignal,
): Promise<QemuLaunch> {
  const runtime = runtimeFolder(folder)
  // A VM runs with many layers, too: a merge that lacks space must not prevent the start.
  await mergeFrozen(folder, vm.image, signal).catch(() => signal.throwIfAborted())
  const { boot } = vm.image
  const macos = isMacos(vm) ? await requireMacos(settings) : undefined
  const isUefi =
    boot.kind === 'firmware' && (macos ? 'uefi' : (boot.firmware ?? defaultFirmware[vm.architecture])) === 'uefi'
  const accelerator = await acceleratorFor(vm.architecture)
  const chain = await readChain(folder)
  const parked = await readParked(folder)
  // The image's memory fits only a disk that never ran.
  const ofImage = vm.isCold || !chain?.isFresh ? undefined : vm.image.memory
  const saved = parked ? { file: parkedMemory(folder), description: parked.shape } : ofImage
  const command = qemuArguments(vm, {
    accelerator,
    network,
    runtime,
    isoIsDisk: vm.iso !== undefined && !(await isCd(vm.iso)),
    diskNode: await diskNodeOn(folder, vm.image),
    ...(macos && { macos }),
    ...(isUefi && { uefiCode: await prepareUefi(vm.architecture, folder) }),
  })
  const input = { vm, command, accelerator, network, diskBytes: await diskBytes(folder) }
  const shape = await machineShape(input).catch(() => undefined)
  const note = vm.isCold ? undefined : chain?.whyCold
  const rest = saved ? memoryFor(saved, shape) : note !== undefined && { note }
  const doors = parked?.doors ?? portAccessOf(network, vm)
  return { runtime, command, doors, shape, smcKey: macos?.smcKey, ...rest }
}

/**
 * Whether a file has the file system of CDs. Apple's installer images have a partition table and HFS+ instead, and firmware
 * does not boot such a disk from a CD drive. QEMU says why a file cannot be read.
 */
async function isCd(file: string): Promise<boolean> {
  try {
    await using handle = await fs.open(file)
    const { buffer } = await handle.read(Buffer.alloc(5), 0, 5, 0x8001)
    return ['CD001', 'BEA01'].includes(buffer.toString('latin1'))
  } catch {
    return true
  }
}

type Memory = NonNullable<VmSpec['image']['memory']>

function memoryFor(
  { file, description }: Memory,
  shape: MachineShape | undefined,
): Pick<QemuLaunch, 'memory' | 'note'> {
  const problem = shape ? difference(description, shape) : 'the configuration of this host is not known'
  return problem === undefined ? { memory: file } : { note: coldNote(problem) }
}

export const coldNote = (problem: string): string =>
  `booted from the disk because the saved memory cannot be resumed here: ${problem}`
