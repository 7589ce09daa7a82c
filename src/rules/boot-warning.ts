// Whether a VM's firmware finds something to boot on a disk. Only a warning, because the disk may be a data disk or
// hold an unknown system.
import type { Architecture } from '../api/architecture.ts'

interface Booted {
  readonly architecture: Architecture
  readonly firmware?: 'bios' | 'uefi' | undefined
  readonly os?: 'macos' | 'linux' | 'other' | undefined
}

interface BootPartitions {
  readonly efi: boolean
  readonly bios: boolean
  readonly apple: boolean
}

/** What will not boot, and what to do; undefined if the disk may boot. */
export function bootWarning({ architecture, firmware, os }: Booted, found: BootPartitions): string | undefined {
  if (architecture === 'arm64') {
    // The firmware of a Mac boots an Apple container without an EFI system partition.
    if (found.apple && os !== 'linux') return undefined
    if (os === 'macos') return 'No APFS container found; this disk will not boot macOS on arm64 nodes'
    return found.efi ? undefined : 'No EFI system partition found; this disk will not boot on arm64 nodes'
  }
  const isUefi = firmware === 'uefi' || os === 'macos'
  if (isUefi && !found.efi) {
    const next = found.bios && os !== 'macos' ? '. Upload it with firmware bios' : ''
    return `No EFI system partition found; this disk will not boot with UEFI firmware${next}`
  }
  if (isUefi || found.bios) return undefined
  return found.efi
    ? 'No BIOS boot code found; this disk will not boot with BIOS firmware. Upload it with firmware uefi'
    : 'No boot code and no EFI system partition found; this disk will not boot'
}
