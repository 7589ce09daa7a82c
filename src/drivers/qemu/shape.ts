// Describes a VM as its hypervisor sees it, in comparable fields. Saved memory resumes only in a VM with the same value
// in every field. QEMU does not refuse memory of a different VM; the guest would hang and be reported as running.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import type { Boot, MemoryState, VmSpec } from '../driver.ts'
import { outputOf } from '../program-output.ts'
import type { Accelerator } from './accel.ts'
import { cpuFor, qemuArchitectures } from './architectures.ts'
import type { NetworkKind } from './network/network.ts'

export type MachineShape = MemoryState['description']

/** The fields' names for users. */
const words: Readonly<Record<string, string>> = {
  hypervisor: 'hypervisor',
  version: 'version of QEMU',
  architecture: 'architecture',
  machine: 'machine',
  accelerator: 'accelerator',
  cpu: 'processor',
  clock: "host's processor",
  cores: 'number of cores',
  memoryMiB: 'memory in MiB',
  devices: 'list of devices',
  boot: 'kernel or firmware',
  network: 'kind of network',
  diskBytes: 'size of the disk in bytes',
}

interface ShapeInput {
  readonly vm: VmSpec
  readonly command: readonly string[]
  readonly accelerator: Accelerator
  readonly network: NetworkKind
  readonly diskBytes: number
}

export async function machineShape({
  vm,
  command,
  accelerator,
  network,
  diskBytes,
}: ShapeInput): Promise<MachineShape> {
  const settings = qemuArchitectures[vm.architecture]
  const [program, boot, processor] = await Promise.all([
    aboutProgram(settings.program),
    bootText(vm.image.boot),
    hostProcessor(),
  ])
  const [alias = '', ...properties] = given(command, '-machine').split(',')
  const cpu = cpuFor(vm.architecture, accelerator)
  return {
    hypervisor: 'qemu',
    version: program.version,
    architecture: vm.architecture,
    machine: [program.machines.get(alias) ?? alias, ...properties].join(','),
    accelerator: given(command, '-accel'),
    cpu: accelerator === 'tcg' ? cpu : `${cpu}: ${processor.model} ${processor.features}`,
    // A PC's time stamp counter follows the host's, even under emulation, and its kernel measured it at boot.
    ...(vm.architecture === 'amd64' && { clock: `${process.arch} ${processor.model}` }),
    cores: vm.cpu,
    memoryMiB: vm.memoryMiB,
    devices: devicesOf(command),
    boot,
    network,
    diskBytes,
  }
}

/** Returns the first difference, for users. */
export function difference(saved: MachineShape, now: MachineShape): string | undefined {
  const fields = [...new Set([...Object.keys(words), ...Object.keys(saved), ...Object.keys(now)])]
  const field = fields.find((name) => saved[name] !== now[name])
  if (field === undefined) return undefined
  const show = (value: string | number | undefined) => String(value ?? 'unknown').slice(0, 200)
  const isLong = field === 'devices' || field === 'boot'
  return isLong
    ? `the ${words[field]} differs`
    : `the ${words[field] ?? `"${field.slice(0, 50)}"`} was ${show(saved[field])} and is ${show(now[field])} here`
}

const given = (command: readonly string[], flag: string): string => command[command.indexOf(flag) + 1] ?? ''

/** Lists the devices in order, without values that differ between VMs, such as addresses. */
const devicesOf = (command: readonly string[]): string =>
  command
    .flatMap((word, index) => {
      const value = command[index + 1] ?? ''
      if (word === '-device') return [value.replace(/,(mac|guid)=[^,]*/g, '')]
      return word === '-fw_cfg' ? [value.replace(/,string=.*/, '')] : []
    })
    .join('; ')

interface Program {
  readonly version: string
  /** The full names of machine aliases in this version. */
  readonly machines: ReadonlyMap<string, string>
}

async function aboutProgram(name: string): Promise<Program> {
  const [version, machines] = await Promise.all([outputOf(name, '--version'), outputOf(name, '-machine help')])
  if (version === undefined || machines === undefined) throw new Error(`${name} is not installed or fails`)
  const aliases = machines.matchAll(/^(\S+) .*\(alias of (\S+)\)/gm)
  return {
    version: /version (.*)/.exec(version)?.[1]?.trim() ?? version.trim(),
    machines: new Map([...aliases].map(([, alias = '', name = '']) => [alias, name])),
  }
}

/** The same model may have other features under another microcode or hypervisor. */
async function hostProcessor(): Promise<{ readonly model: string; readonly features: string }> {
  const text = await fs.readFile('/proc/cpuinfo', 'utf8').catch(() => '')
  const field = (name: RegExp) => name.exec(text)?.[1] ?? ''
  const features = field(/^(?:flags|Features)\s*: ?(.*)/m)
  const model = field(/^(?:model name|CPU part)\s*: ?(.*)/m)
  return { model, features: hash('sha256', features).slice(0, 16) }
}

const digests = new Map<string, Promise<string>>()

async function bootText(boot: Boot): Promise<string> {
  if (boot.kind === 'firmware') return `firmware ${boot.firmware ?? ''}`.trim()
  const files = [boot.kernel, ...(boot.initrd === undefined ? [] : [boot.initrd])]
  const parts = await Promise.all(files.map(digestOf))
  return hash('sha256', JSON.stringify([...parts, boot.commandLine]))
}

/** Cached until the file changes. */
async function digestOf(file: string): Promise<string> {
  const { mtimeMs, size, ino, dev } = await fs.stat(file)
  const key = `${file} ${dev} ${ino} ${mtimeMs} ${size}`
  const known = digests.get(key)
  if (known) return known
  const digest = fs.readFile(file).then((content) => hash('sha256', content))
  digests.set(key, digest)
  digest.catch(() => digests.delete(key))
  return digest
}
