// What the tests need from Debian, and how it comes: by apt, once, saying so; where that is not possible, by name.
import { hostPrograms } from '../src/bin/host-programs.ts'
import { canInstall, type DebianProgram, install, installLine, missingOf } from '../src/platform/debian.ts'

const packages: readonly DebianProgram[] = [
  ...hostPrograms,
  { name: 'mount', program: 'mount', why: 'small file systems for the tests of a full disk' },
  { name: 'bsdutils', program: 'script', why: 'a terminal for the tests of questions and answers' },
  { name: 'bash', program: 'bash', why: 'completion of commands and names' },
  { name: 'zsh', program: 'zsh', why: 'the same' },
  { name: 'fish', program: 'fish', why: 'the same' },
  { name: 'groff-base', program: 'groff', why: 'checking the man pages' },
  { name: 'fdisk', program: 'sfdisk', why: 'looking at the partitions of saved disks' },
  { name: 'procps', program: 'ps', why: 'looking for secrets in the arguments of processes' },
  { name: 'curl', program: 'curl', why: 'the requests of the README' },
  { name: 'etcd-server', program: 'etcd', why: 'the store of several servers' },
  { name: 'chromium-headless-shell', program: 'chromium-headless-shell', why: 'looking at pages as a person does' },
  { name: 'docker-registry', program: 'docker-registry', why: 'a registry to push to and pull from' },
  { name: 'skopeo', program: 'skopeo', why: 'another client of registries' },
  { name: 'systemd', program: 'systemd-analyze', why: 'judging the units of services' },
  { name: 'ovmf', program: '/usr/share/OVMF/OVMF_CODE.fd', why: 'firmware for amd64 VMs' },
  { name: 'qemu-efi-aarch64', program: '/usr/share/AAVMF/AAVMF_CODE.fd', why: 'firmware for arm64 VMs' },
]

const longPackages: readonly DebianProgram[] = [
  { name: 'haproxy', program: 'haproxy', why: 'the load balancer of the operating page' },
]

export async function ensurePackages(isLong = false): Promise<void> {
  const missing = missingOf(isLong ? [...packages, ...longPackages] : packages)
  if (missing.length === 0) return
  const list = missing.map(({ name, why }) => `  ${name}: ${why}`).join('\n')
  if (!canInstall()) {
    console.error(`svc3: the tests need these programs, and only root may install them (with Debian's apt):\n${list}`)
    console.error(`svc3: install them and run npm test again, for example: sudo ${installLine(missing)}`)
    process.exit(1)
  }
  console.error(`svc3: installing with apt what the tests need:\n${list}`)
  try {
    await install(missing)
  } catch (error) {
    console.error(`svc3: ${(error as Error).message}`)
    process.exit(1)
  }
}
