// The programs that this host needs to run VMs with QEMU, and how to install them. `svc3 dev` checks them; tests
// install them.
import { canInstall, type DebianProgram, install, installLine, missingOf } from '../platform/debian.ts'

interface HostProgram extends DebianProgram {
  /** Default: everywhere. On macOS guests are not isolated and the built-in images are not built. */
  readonly only?: NodeJS.Platform
}

const programs: readonly HostProgram[] = [
  { name: 'qemu-system-x86', program: 'qemu-system-x86_64', why: 'runs amd64 VMs' },
  { name: 'qemu-system-arm', program: 'qemu-system-aarch64', why: 'runs arm64 VMs' },
  { name: 'ovmf', program: '/usr/share/OVMF/OVMF_CODE_4M.fd', why: 'firmware of amd64 VMs', only: 'linux' },
  { name: 'qemu-efi-aarch64', program: '/usr/share/AAVMF/AAVMF_CODE.fd', why: 'firmware of arm64 VMs', only: 'linux' },
  { name: 'qemu-utils', program: 'qemu-img', why: 'creates disks' },
  {
    name: 'slirp4netns',
    program: 'slirp4netns',
    why: 'connects VMs to an isolated network',
    only: 'linux',
  },
  { name: 'iproute2', program: 'ip', why: 'the same', only: 'linux' },
  { name: 'util-linux', program: 'unshare', why: 'the same', only: 'linux' },
  { name: 'e2fsprogs', program: 'mke2fs', why: 'builds the demo images', only: 'linux' },
  { name: 'xz-utils', program: 'xz', why: 'the same', only: 'linux' },
  { name: 'fdisk', program: 'sfdisk', why: 'the same', only: 'linux' },
  { name: 'mtools', program: 'mcopy', why: 'the same', only: 'linux' },
  { name: 'openssh-client', program: 'ssh', why: 'svc3 vm ssh' },
]

export const hostProgramsOn = (platform: NodeJS.Platform): readonly DebianProgram[] =>
  programs.filter(({ only }) => only === undefined || only === platform)

export const hostPrograms: readonly DebianProgram[] = hostProgramsOn(process.platform)

/** Disregards files of firmware: some distributions keep them elsewhere, and a VM that lacks one says so. */
export const hasHostPrograms = (): boolean =>
  missingOf(hostPrograms.filter(({ program }) => !program.startsWith('/'))).length === 0

type Say = (line: string) => void

/** Installs missing programs if it can, and says what it does or how to install them. Returns whether VMs can run here. */
export async function ensureHostPrograms(say: Say): Promise<boolean> {
  const missing = missingOf(hostPrograms)
  if (missing.length === 0) return true
  if (!canInstall() && hasHostPrograms()) return true
  const list = missing.map(({ name, why }) => `  ${name}: ${why}`).join('\n')
  if (process.platform !== 'linux' || !canInstall()) {
    const line = process.platform === 'darwin' ? 'brew install qemu' : `sudo ${installLine(missing)}`
    say(`VMs need these programs, which only root can install:\n${list}\nRun: ${line}`)
    return false
  }
  say(`Installing programs for VMs with apt:\n${list}`)
  try {
    await install(missing)
    return true
  } catch (error) {
    say(`The installation failed: ${(error as Error).message}\nRun: ${installLine(missing)}`)
    return hasHostPrograms()
  }
}
