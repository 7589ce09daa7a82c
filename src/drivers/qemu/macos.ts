// macOS guests on amd64. The operator supplies the boot loader (OpenCore) and the SMC key in the node's configuration. The
// key is never in argv or a log: QEMU reads it from a file.
import fs from 'node:fs/promises'
import path from 'node:path'
import { writeFileAtomically } from '../../platform/files.ts'
import type { VmSpec } from '../driver.ts'
import type { Accelerator } from './accel.ts'

/** Operator settings for macOS. The boot loader and the SMC key may be inside the guest's disk instead. */
export interface MacosSettings {
  /** A disk that the firmware starts first. It is never written to. */
  readonly openCore?: { readonly file: string; readonly format: 'raw' | 'qcow2' }
  /** 64 characters. */
  readonly smcKey?: string
  /** Default: as in `cpus`. */
  readonly cpu?: string
}

export const isMacos = ({ architecture, image }: Pick<VmSpec, 'architecture' | 'image'>): boolean =>
  architecture === 'amd64' && image.os === 'macos'

/**
 * An Intel processor that every macOS since 10.13 knows, whatever the host's is; on a Mac, the host's. `invtsc` and
 * `vmware-cpuid-freq` tell the guest the frequency of its clock, which it would often measure wrongly.
 */
const cpus: Readonly<Record<Accelerator, string>> = {
  kvm: 'Haswell-noTSX,vendor=GenuineIntel,kvm=on,+invtsc,vmware-cpuid-freq=on',
  hvf: 'host,-pdpe1gb,vendor=GenuineIntel,+invtsc,vmware-cpuid-freq=on',
  // Without what emulation lacks, so that QEMU does not warn at every start.
  tcg: 'Haswell-noTSX,vendor=GenuineIntel,-pcid,-x2apic,-tsc-deadline,-invpcid',
}
export const macosCpu = (accelerator: Accelerator, { cpu }: MacosSettings): string => cpu ?? cpus[accelerator]

/** One socket: macOS does not accept several. */
export const macosCores = (cores: number): string => `${cores},sockets=1,cores=${cores},threads=1`

/** Network devices behind a hotplug bridge do not count as built-in ones, which accounts and licences look for. */
export const macosGlobals = ['-global', 'ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off'] as const

/** virtio is known since macOS 11, VMware's since 10.11, Intel's always. */
export const macosNetworkDevice = ({ netBoost, legacyIO }: Pick<VmSpec, 'netBoost' | 'legacyIO'>): string =>
  legacyIO ? 'e1000-82545em' : netBoost ? 'virtio-net-pci' : 'vmxnet3'

const usual = { width: 1_920, height: 1_080 }

/** Always present: without screen and keys macOS stops at its first questions. Video memory holds the whole picture. */
export function macosScreen(screen: VmSpec['screen']): readonly string[] {
  const { width, height } = screen ?? usual
  const megabytes = Math.max(16, 2 ** Math.ceil(Math.log2((width * height * 4) / 2 ** 20)))
  return [`VGA,edid=on,xres=${width},yres=${height},vgamem_mb=${megabytes}`, 'qemu-xhci', 'usb-kbd', 'usb-tablet']
}

/** As a Mac's firmware would report it; OpenCore may replace it. */
export const macosSerial = (serial: string): readonly string[] => [
  ...['-smbios', `type=1,manufacturer=Apple Inc.,serial=${serial}`],
  ...['-smbios', `type=2,manufacturer=Apple Inc.,serial=${serial}`],
]

const keyForm = /^[ !#-~]{64}$/
/** Says what is wrong with a key, without the key itself. */
export const smcKeyProblem = (key: string): string | undefined =>
  keyForm.test(key) ? undefined : `it has to be 64 printable characters without '"', and has ${key.length}`

export const smcFile = (runtime: string): string => path.join(runtime, 'smc.conf')

/** Writes the key for QEMU to read. The file is removed after QEMU has started. */
export async function writeSmc(runtime: string, key: string | undefined): Promise<void> {
  if (key === undefined) return
  const problem = smcKeyProblem(key)
  if (problem !== undefined) throw new Error(`the SMC key in this node's configuration cannot be used: ${problem}`)
  await writeFileAtomically(smcFile(runtime), `[device "smc"]\n  driver = "isa-applesmc"\n  osk = "${key}"\n`)
}

export const removeSmc = (runtime: string): Promise<void> => fs.rm(smcFile(runtime), { force: true })

const see = 'see docs/operate/hosts-linux.md#macos-guests-on-an-intel-host'

/** Why macOS for amd64 would hang at its first screen here. */
export async function macosProblem(settings: MacosSettings | undefined): Promise<string | undefined> {
  if (!settings) return `set a boot disk and an SMC key under "macos" in agent.json; ${see}`
  const { openCore } = settings
  const code = openCore && (await fs.access(openCore.file, fs.constants.R_OK).then(() => undefined, codeOf))
  return code && `the boot disk ${openCore.file} cannot be read (${code}); ${see}`
}

const codeOf = ({ code }: NodeJS.ErrnoException): string => code ?? 'unknown'

/** No setting changes this: QEMU's machines are not Macs with Apple silicon. */
export const appleSiliconOnly =
  'macOS for Apple silicon requires a Mac and an agent with --driver apple; see docs/operate/hosts-macos.md'

export async function requireMacos(settings: MacosSettings | undefined): Promise<MacosSettings> {
  const problem = await macosProblem(settings)
  if (!settings || problem !== undefined) throw new Error(`this node cannot run macOS guests: ${problem}`)
  return settings
}
