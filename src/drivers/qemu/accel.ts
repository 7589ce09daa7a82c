// Which accelerator a guest gets: hardware only for the host's architecture, and only where it works.
import fs from 'node:fs/promises'
import type { Architecture } from '../../api/architecture.ts'

export type Accelerator = 'kvm' | 'hvf' | 'tcg'

const hostArchitectures: Readonly<Partial<Record<NodeJS.Architecture, Architecture>>> = { x64: 'amd64', arm64: 'arm64' }
export const hostArchitecture: Architecture | undefined = hostArchitectures[process.arch]

export async function acceleratorFor(guest: Architecture): Promise<Accelerator> {
  if (guest !== hostArchitecture) return 'tcg'
  if (process.platform === 'darwin') return 'hvf'
  return (await isKvmUsable()) ? 'kvm' : 'tcg'
}

/**
 * Existence is not enough: the device may be inaccessible. Some x86 hosts have a /dev/kvm without support of the processor
 * (PVM in virtual machines): it creates VMs and hangs every kernel that was not built for it.
 */
async function isKvmUsable(): Promise<boolean> {
  try {
    await (await fs.open('/dev/kvm', 'r+')).close()
  } catch {
    return false
  }
  if (hostArchitecture !== 'amd64') return true
  return /^flags\s*:.*\b(vmx|svm)\b/m.test(await fs.readFile('/proc/cpuinfo', 'utf8'))
}
