// What lets the disk start by itself under UEFI, in this service or elsewhere: Debian's GRUB in the EFI partition, and the
// kernel on the root file system. (A PC's old BIOS would need one more program on the machine that builds: left out.)
import { gzipSync } from 'node:zlib'
import { type Architecture, commandLine, rootLabel, traits } from './architectures.ts'
import { fatFileSystem } from './fat.ts'
import type { Kernel } from './kernel.ts'
import { Tree } from './tree.ts'

/** Debian's signed GRUB has all its modules in one file, and reads /EFI/debian/grub.cfg. */
export const bootPackage = (architecture: Architecture): string => `grub-efi-${architecture}-signed`

export function efiPartition(architecture: Architecture, packages: Tree, sizeBytes: number): Buffer {
  const { efi } = traits[architecture]
  const grub = packages.get(efi.grub)
  if (grub?.kind !== 'file') throw new Error(`the package ${bootPackage(architecture)} has no /${efi.grub}`)
  const tree = new Tree().file(`EFI/BOOT/${efi.name}`, grub.data).file(
    'EFI/DEBIAN/GRUB.CFG',
    `search --no-floppy --set=root --label ${rootLabel}
linux /boot/vmlinuz ${commandLine(architecture)}
initrd /boot/initrd.img
boot
`,
  )
  return fatFileSystem(tree, sizeBytes, 'TINY-EFI')
}

/** For GRUB, compressed if it is not already: a third of the size, and GRUB reads slowly. */
export function addBootFiles(tree: Tree, kernel: Kernel, initrd: Buffer): void {
  const isRaw = kernel.shipped.toString('latin1', 0x38, 0x3c) === 'ARM\x64'
  tree.file('boot/vmlinuz', isRaw ? gzipSync(kernel.shipped, { level: 6 }) : kernel.shipped)
  tree.file('boot/initrd.img', gzipSync(initrd, { level: 6 }))
}
