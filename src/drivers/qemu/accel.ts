// Which accelerator a guest gets. Hardware only for the host's own architecture and only where it really works.
import fs from 'node:fs/promises'
import type { Architecture } from '../../api/architecture.ts'

export type Accelerator = 'kvm' | 'hvf' | 'tcg'

const hostArchitectures: Readonly<Partial<Record<NodeJS.Architecture, Architecture>>> = { x64: 'amd64', arm64: 'arm64' }
export const hostArchitecture: Architecture | undefined = hostArchitectures[process.arch]

/** `forced` is the operator's setting; without it, what this host can do. */
export async function acceleratorFor(guest: Architecture, forced?: Accelerator): Promise<Accelerator> {
  if (guest !== hostArchitecture) return 'tcg'
  if (forced) return forced
  if (process.platform === 'darwin') return 'hvf'
  return (await isKvmUsable()) ? 'kvm' : 'tcg'
}

/**
 * Being there is not enough: it may be closed to us. On x86 there are also hosts whose /dev/kvm is not backed by the
 * processor (PVM, a virtual machine's own substitute): it opens, creates VMs, and hangs every kernel not made for it.
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
