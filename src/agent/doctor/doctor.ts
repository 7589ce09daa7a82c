// Checks whether a host can be a node. Each check reports what it found and what to do, and changes nothing. A check that
// throws is reported as a problem.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { HostCheck } from '../../api/nodes/node-report.ts'
import type { Driver } from '../../drivers/driver.ts'
import { outputOf } from '../../drivers/program-output.ts'
import { type Accelerator, acceleratorFor, hostArchitecture } from '../../drivers/qemu/accel.ts'
import { findUefi } from '../../drivers/qemu/firmware.ts'
import type { MacosSettings } from '../../drivers/qemu/macos.ts'
import { readFileIfPresent } from '../../platform/files.ts'
import { reasonOf } from '../../platform/reason.ts'
import { succeeds } from '../../platform/succeeds.ts'
import { sizeText } from '../../rules/sizes.ts'
import { listeners } from '../host/listening-ports.ts'

export type CheckResult = Omit<HostCheck, 'check'>

export interface Check {
  readonly check: string
  look(signal: AbortSignal): Promise<CheckResult>
}

const gib = 2 ** 30
export const ok = (found: string): CheckResult => ({ result: 'ok', found })
export const warning = (found: string, advice: string): CheckResult => ({ result: 'warning', found, advice })
export const problem = (found: string, advice: string): CheckResult => ({ result: 'problem', found, advice })

export async function examine(checks: readonly Check[], signal: AbortSignal): Promise<readonly HostCheck[]> {
  return Promise.all(
    checks.map(async ({ check, look }) => {
      try {
        return { check, ...(await look(signal)) }
      } catch (error) {
        return { check, ...problem('check failed', reasonOf(error)) }
      }
    }),
  )
}

const wantedNode = 24

export const nodeCheck = (version: string): Check => ({
  check: 'node',
  look: async () =>
    Number(version.split('.')[0]) >= wantedNode
      ? ok(`Node ${version}`)
      : problem(`Node ${version}`, `Install Node ${wantedNode} or newer`),
})

export const hypervisorCheck = (driver: Driver): Check => ({
  check: 'hypervisor',
  async look() {
    const { ok: isOk, problem: why, version, architectures, maxVms, maxMacosVms } = await driver.probe()
    const ofAll = maxVms === undefined ? '' : `, at most ${maxVms} VMs`
    const ofMacos = maxMacosVms === undefined ? '' : `, at most ${maxMacosVms} VMs with macOS`
    if (!isOk) return problem(version, why ?? 'does not work')
    const found = `${version}: ${architectures.join(', ')}${ofAll}${ofMacos}`
    return why === undefined ? ok(found) : warning(found, why)
  },
})

const accelerated: Readonly<Record<Accelerator, string | undefined>> = { kvm: 'KVM', hvf: 'HVF', tcg: undefined }

export const virtualisationCheck: Check = {
  check: 'virtualisation',
  async look() {
    if (!hostArchitecture) return problem(`processor ${process.arch}`, 'Use an x86-64 or ARM host')
    const found = accelerated[await acceleratorFor(hostArchitecture)]
    if (found !== undefined) return ok(`${found}, for ${hostArchitecture}`)
    return warning('none: VMs are emulated and about ten times slower', await whyNoKvm())
  },
}

async function whyNoKvm(): Promise<string> {
  const access = await fs.access('/dev/kvm', fs.constants.R_OK | fs.constants.W_OK).catch((error) => error.code)
  if (access === 'ENOENT')
    return 'Enable virtualization in the firmware of this host (VT-x, AMD-V), or nested virtualization for this VM, and load kvm_intel or kvm_amd'
  if (access !== undefined) return 'Add this user to the group kvm, which owns /dev/kvm'
  return 'The processor shows neither vmx nor svm, although /dev/kvm exists. Use a physical host, or enable nested virtualization'
}

export const firmwareCheck: Check = {
  check: 'firmware',
  async look() {
    const architecture = hostArchitecture ?? 'amd64'
    const files = await findUefi(architecture)
    if (files) return ok(files.code)
    const name = architecture === 'amd64' ? 'ovmf' : 'qemu-efi-aarch64'
    const advice = `Run apt-get install ${name}. Without it, images with UEFI do not start`
    return warning(`no UEFI firmware for ${architecture}`, advice)
  },
}

/** What macOS needs of an Intel processor, by its names in Linux and in macOS, most important first. */
const processorNeeds: readonly { readonly flag: RegExp; readonly lacks: string; readonly preventsMacos?: true }[] = [
  { flag: /\bsse4[._]2\b/i, lacks: 'SSE 4.2: macOS 10.15 and newer do not boot', preventsMacos: true },
  { flag: /\bavx2\b/i, lacks: 'AVX2: macOS 13 and newer do not boot' },
  { flag: /\b(nonstop_tsc|tsci)\b/i, lacks: 'an invariant TSC: clocks of macOS guests are wrong' },
]

const processorFeatures = async (): Promise<string> =>
  (await readFileIfPresent('/proc/cpuinfo')) ??
  (await outputOf('sysctl', '-n machdep.cpu.features machdep.cpu.leaf7_features machdep.cpu.extfeatures')) ??
  ''

export const processorCheck = (settings: () => Promise<unknown>, features = processorFeatures): Check => ({
  check: 'processor',
  async look() {
    if ((await settings()) === undefined) return ok('not checked, because macOS on Intel is not configured')
    const known = await features()
    // All Intel processors have it. sysctl shows nothing if one of the names is missing.
    if (!/\bfpu\b/i.test(known)) return ok('not known')
    const need = processorNeeds.find(({ flag }) => !flag.test(known))
    if (!need) return ok('has what macOS needs')
    const found = `lacks ${need.lacks}`
    if (!need.preventsMacos) return warning(found, 'Use a newer Intel host, or images with an older macOS')
    return { ...problem(found, 'Use a newer Intel host'), preventsMacos: true }
  },
})

/** Most nodes do not run macOS images for Intel, so missing settings are no problem. */
export const macosCheck = (settings: () => Promise<MacosSettings | undefined>): Check => ({
  check: 'macos on intel',
  async look() {
    const macos = await settings()
    if (!macos) return ok('not configured; see docs/operate/hosts-linux.md')
    const { openCore, smcKey } = macos
    if (openCore) {
      const code = await fs.access(openCore.file, fs.constants.R_OK).catch((error) => error.code)
      if (code !== undefined)
        return problem(`boot disk ${openCore.file} (${code})`, 'Put the file there, readable by the user of the agent')
    }
    const ignored = (await readFileIfPresent('/sys/module/kvm/parameters/ignore_msrs').catch(() => undefined))?.trim()
    if (ignored !== undefined && ignored !== 'Y')
      return problem(
        'KVM does not ignore MSRs, which macOS needs',
        'Run echo "options kvm ignore_msrs=1" > /etc/modprobe.d/kvm.conf, and reload kvm',
      )
    const parts = [openCore ? 'boot disk' : 'no boot disk', smcKey === undefined ? 'no SMC key' : 'SMC key']
    return ok(parts.join(', '))
  },
})

/** The first ports that VMs get. */
const firstPorts = { ssh: 8_822, vnc: 5_999, 'screen sharing': 5_900 }
const span = 100

export const portsCheck: Check = {
  check: 'ports',
  async look() {
    const taken = new Set((await listeners()).map(({ port }) => port))
    const crowded = Object.entries(firstPorts).map(([kind, first]) => {
      const count = Array.from({ length: span }, (_, index) => first + index).filter((port) => taken.has(port)).length
      return { text: `${span - count} of ${span} from ${first} (${kind})`, isFull: count > span / 2 }
    })
    const found = `free: ${crowded.map(({ text }) => text).join(', ')}`
    return crowded.some(({ isFull }) => isFull)
      ? warning(found, 'Other programs or another agent use many of these ports. VMs get higher ones')
      : ok(found)
  },
}

export const spaceCheck = (dataDir: string): Check => ({
  check: 'disk space',
  async look() {
    const { bavail, bsize } = await fs.statfs(await existing(dataDir))
    const free = (bavail * bsize) / gib
    // Rounded, because a node reports it again whenever it changes.
    const found = `${sizeText(Number(free.toPrecision(2)) * gib)} free for ${dataDir}`
    if (free < 5) return problem(found, 'Free disk space; an image does not fit')
    return free < 50 ? warning(found, 'Enough for a test; macOS images take 25 to 90 GiB each') : ok(found)
  },
})

async function existing(folder: string): Promise<string> {
  for (let at = path.resolve(folder); ; at = path.dirname(at)) if (await succeeds(fs.access(at))) return at
}

export const folderCheck = (dataDir: string): Check => ({
  check: 'data folder',
  async look() {
    const stat = await fs.stat(dataDir).catch((error: NodeJS.ErrnoException) => error)
    if (stat instanceof Error)
      return stat.code === 'ENOENT'
        ? ok(`${dataDir} does not exist yet`)
        : problem(`${dataDir} (${stat.code})`, 'Run the check as the user of the agent, or as root')
    if (!stat.isDirectory()) return problem(`${dataDir} is not a folder`, 'Choose another with --data DIR')
    const isOpen = (stat.mode & 0o077) !== 0
    return isOpen
      ? warning(`${dataDir} is accessible to other users`, `Run chmod 700 ${dataDir}; it holds the key of this node`)
      : ok(dataDir)
  },
})

export const sizeCheck: Check = {
  check: 'size',
  async look() {
    const memory = os.totalmem() / gib
    const found = `${os.availableParallelism()} cores, ${sizeText(os.totalmem())} of memory`
    return memory < 4 ? warning(found, 'The default VM size does not fit; deploy smaller VMs') : ok(found)
  },
}

const minFiles = 4_096

export const limitsCheck: Check = {
  check: 'limits',
  async look() {
    const limits = await readFileIfPresent('/proc/self/limits').catch(() => undefined)
    if (limits === undefined) return ok('system defaults')
    const of = (name: string): number => {
      const [, , hard = ''] = new RegExp(`^${name}\\s+(\\S+)\\s+(\\S+)`, 'm').exec(limits) ?? []
      return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard)
    }
    const [files, processes] = [of('Max open files'), of('Max processes')]
    const found = `${files} open files, ${Number.isFinite(processes) ? processes : 'any number of'} processes`
    if (files < minFiles) return warning(found, `Raise the limit of open files to ${minFiles} or more (ulimit -n)`)
    return processes < 1_024 ? warning(found, 'Raise the limit of processes to 1024 or more (ulimit -u)') : ok(found)
  },
}
