// The files of a VM as tart expects them: `config.json`, `disk.img` and `nvram.bin` in a folder, made from the node's copy
// of an image. A new disk is a new folder under a new name; it becomes the VM's disk when `apple.json` names it.
import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../platform/exec.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { syncFolder, writeFileAtomically } from '../../platform/files.ts'
import { succeeds } from '../../platform/succeeds.ts'
import type { VmSpec } from '../driver.ts'
import { jsonFile } from '../json-file.ts'
import { cannotShrink, missingCopy } from '../refusals.ts'
import { moveRecovery } from './recovery.ts'
import { type Tart, tartFiles, tartFolder, tartHome } from './tart.ts'

interface MachineRecord {
  readonly version: 1
  /** tart's name of the VM. */
  readonly name: string
  readonly base: string
  /** The disk of a Mac is larger than its image, as after a revert. macOS does not use the space by itself. */
  readonly isLarger?: true
}

/** The part of tart's config that svc3 reads and writes; the rest is preserved. */
interface TartConfig {
  readonly os?: 'darwin' | 'linux'
  readonly cpuCount?: number
  readonly memorySize?: number
  readonly macAddress?: string
  readonly display?: { readonly width: number; readonly height: number; readonly unit?: 'pt' | 'px' }
}

/** Without cloning, a copy takes time in proportion to the disk. */
const cloneMs = 3_600_000

const { read: readMachine, write: writeMachine } = jsonFile<MachineRecord>('apple.json')

export { readMachine }

export async function requireMachine(folder: string): Promise<MachineRecord> {
  const machine = await readMachine(folder)
  if (!machine) throw new Error(`there is no VM in ${folder}: create it first`)
  return machine
}

export const tartFile = (folder: string, { name }: Pick<MachineRecord, 'name'>, file: keyof typeof tartFiles): string =>
  path.join(tartFolder(folder, name), tartFiles[file])

export async function readTartConfig(folder: string, machine: Pick<MachineRecord, 'name'>): Promise<TartConfig> {
  return JSON.parse(await fs.readFile(tartFile(folder, machine, 'config'), 'utf8')) as TartConfig
}

export const isSuspendable = ({ os = 'darwin' }: TartConfig): boolean => os === 'darwin'

export const isSuspended = (folder: string, machine: Pick<MachineRecord, 'name'>): Promise<boolean> =>
  succeeds(fs.access(tartFile(folder, machine, 'state')))

/**
 * Clones the file on file systems that can, otherwise copies it. `cp -c` of macOS fails between volumes; the copy that is
 * used there instead cannot be interrupted.
 */
export async function cloneFile(
  from: string,
  to: string,
  signal?: AbortSignal,
  platform: NodeJS.Platform = process.platform,
): Promise<void> {
  signal?.throwIfAborted()
  if (platform === 'darwin') await fs.copyFile(from, to, constants.COPYFILE_FICLONE)
  else
    await exec('cp', ['--reflink=auto', '--sparse=always', from, to], { timeoutMs: cloneMs, ...(signal && { signal }) })
  await fs.chmod(to, 0o600)
  const handle = await fs.open(to, 'r')
  await handle.sync().finally(() => handle.close())
}

/**
 * Gives the VM a random, locally administered MAC address, which it keeps until its next cold boot. With an old one tart
 * could find the lease of an earlier run, whose IP address macOS may have given to another guest.
 */
export async function renewMac(folder: string, machine: Pick<MachineRecord, 'name'>): Promise<void> {
  const bytes = randomBytes(6)
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02
  const macAddress = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':')
  await writeConfig(tartFolder(folder, machine.name), { ...(await readTartConfig(folder, machine)), macAddress })
}

export async function createMachine(folder: string, vm: VmSpec, tart: Tart): Promise<void> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  if (!(await readMachine(folder))) await replaceMachine(folder, vm, tart)
}

export async function replaceMachine(folder: string, vm: VmSpec, tart: Tart): Promise<void> {
  requireBootable(vm)
  if (!(await succeeds(fs.access(vm.image.disk)))) throw missingCopy(vm.image)
  const name = newName(folder)
  const place = tartFolder(folder, name)
  try {
    await (vm.image.machine ? layOut(place, vm) : layOutLinux(folder, name, vm, tart))
    await growFile(path.join(place, tartFiles.disk), Math.max(vm.image.virtualSizeBytes, vm.diskBytes ?? 0))
    const isMac = isSuspendable(await readTartConfig(folder, { name }))
    const isLarger = isMac && (vm.diskBytes ?? 0) > vm.image.virtualSizeBytes
    // If the partition has to stay, growing the file system in the guest fails, and that is told.
    if (isLarger) await moveRecovery(path.join(place, tartFiles.disk))
    // tart refuses --random-serial for Linux.
    if (vm.systemSerial !== undefined && isMac) await tart.command(folder, ['set', name, '--random-serial'])
    await syncFolder(place)
    await syncFolder(path.dirname(place))
    failpoint('apple-laid-out')
    await writeMachine(folder, { version: 1, name, base: vm.image.digest, ...(isLarger && { isLarger }) })
  } catch (error) {
    await fs.rm(place, { recursive: true, force: true })
    throw error
  }
  failpoint('apple-recorded')
  await removeOthers(folder, name)
}

/** Derived from the folder, so that a process can be recognised by its arguments, and unique. */
const newName = (folder: string): string => `${namePrefix(folder)}-${randomBytes(4).toString('hex')}`

export const namePrefix = (folder: string): string =>
  `svc3-${createHash('sha256').update(path.resolve(folder)).digest('hex').slice(0, 16)}`

function requireBootable({ image, architecture }: VmSpec): void {
  const { name, boot, format } = image
  if (architecture !== 'arm64') throw new Error(`this host runs arm64 VMs only, and image ${name} is ${architecture}`)
  if (boot.kind === 'kernel')
    throw new Error(
      `image ${name} boots by a kernel beside its disk, and tart boots disks only: deploy it on a node that has QEMU`,
    )
  if (format !== 'raw') throw new Error(`image ${name} is stored as ${format} on this node; tart reads only raw disks`)
}

async function layOut(place: string, { image }: VmSpec): Promise<void> {
  const { machine, disk, name } = image
  if (machine?.nvram === undefined) throw new Error(`image ${name} has no NVRAM, which a Mac needs to boot it`)
  await fs.mkdir(place, { recursive: true, mode: 0o700 })
  await cloneFile(machine.config, path.join(place, tartFiles.config))
  await cloneFile(machine.nvram, path.join(place, tartFiles.nvram))
  await cloneFile(disk, path.join(place, tartFiles.disk))
}

/** Lays out an image that never ran on a Mac: tart creates a machine for Linux, which boots by UEFI. */
async function layOutLinux(folder: string, name: string, { image }: VmSpec, tart: Tart): Promise<void> {
  const place = tartFolder(folder, name)
  await fs.mkdir(tartHome(folder), { recursive: true, mode: 0o700 })
  await tart.command(folder, ['create', '--linux', '--disk-size', '1', name])
  await fs.chmod(place, 0o700)
  await fs.rm(path.join(place, tartFiles.disk))
  await cloneFile(image.disk, path.join(place, tartFiles.disk))
}

const writeConfig = (place: string, config: TartConfig): Promise<void> =>
  writeFileAtomically(path.join(place, tartFiles.config), `${JSON.stringify(config, undefined, 2)}\n`)

async function removeOthers(folder: string, kept: string): Promise<void> {
  const vms = path.dirname(tartFolder(folder, kept))
  for (const name of await fs.readdir(vms)) {
    if (name !== kept) await fs.rm(path.join(vms, name), { recursive: true, force: true })
  }
}

/** Sets cores, memory and screen. tart refuses what it does not support, such as less memory than macOS needs. */
export async function shapeMachine(folder: string, vm: VmSpec, tart: Tart, signal: AbortSignal): Promise<void> {
  const machine = await requireMachine(folder)
  const { cpuCount, memorySize, display } = await readTartConfig(folder, machine)
  const { cpu, memoryMiB, screen } = vm
  const isScreen =
    !screen || (display?.width === screen.width && display.height === screen.height && display.unit === 'px')
  if (cpuCount === cpu && memorySize === memoryMiB * 2 ** 20 && isScreen) return
  // Without a unit these are points, which the display of the Mac may double.
  const size = screen ? ['--display', `${screen.width}x${screen.height}px`] : []
  await tart.command(folder, ['set', machine.name, '--cpu', String(cpu), '--memory', String(memoryMiB), ...size], {
    signal,
  })
}

export async function diskBytes(folder: string): Promise<number> {
  return (await fs.stat(tartFile(folder, await requireMachine(folder), 'disk'))).size
}

const gigabyte = 1_000_000_000

/**
 * Returns why macOS cannot use the space. tart grows disks in units of 1,000,000,000 bytes; the remainder is added here. A
 * disk that has the size already is looked at, too, because an earlier attempt may have been interrupted.
 */
export async function growDisk(folder: string, bytes: number, tart: Tart): Promise<string | undefined> {
  const machine = await requireMachine(folder)
  const now = await diskBytes(folder)
  if (bytes < now) throw cannotShrink(now, bytes)
  const whole = Math.floor(bytes / gigabyte)
  if (whole * gigabyte > now) await tart.command(folder, ['set', machine.name, '--disk-size', String(whole)])
  const disk = tartFile(folder, machine, 'disk')
  await growFile(disk, bytes)
  return isSuspendable(await readTartConfig(folder, machine)) ? moveRecovery(disk) : undefined
}

async function growFile(file: string, bytes: number): Promise<void> {
  const handle = await fs.open(file, 'r+')
  try {
    if ((await handle.stat()).size < bytes) await handle.truncate(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}
