// Lets the disk boot by UEFI, in this service or elsewhere: Debian's GRUB in the EFI partition, and the kernel on the root file
// system. BIOS is not supported: it would need another program on the machine that builds.
import { gzipSync } from 'node:zlib'
import { type Architecture, commandLine, rootLabel, traits } from './architectures.ts'
import type { Kernel } from './kernel.ts'
import { Tree } from './tree.ts'

/** Debian's signed GRUB has all its modules in one file, and reads /EFI/debian/grub.cfg. */
export const bootPackage = (architecture: Architecture): string => `grub-efi-${architecture}-signed`

export function efiTree(architecture: Architecture, packages: Tree): Tree {
  const { efi } = traits[architecture]
  const grub = packages.get(efi.grub)
  if (grub?.kind !== 'file') throw new Error(`the package ${bootPackage(architecture)} has no /${efi.grub}`)
  return new Tree().file(`EFI/BOOT/${efi.name}`, grub.data).file(
    'EFI/DEBIAN/GRUB.CFG',
    `search --no-floppy --set=root --label ${rootLabel}
linux /boot/vmlinuz ${commandLine(architecture)}
initrd /boot/initrd.img
boot
`,
  )
}

/** For GRUB, compressed if it is not already: a third of the size, and GRUB reads slowly. */
export function addBootFiles(tree: Tree, kernel: Kernel, initrd: Buffer): void {
  const isRaw = kernel.shipped.toString('latin1', 0x38, 0x3c) === 'ARM\x64'
  tree.file('boot/vmlinuz', isRaw ? gzipSync(kernel.shipped, { level: 6 }) : kernel.shipped)
  tree.file('boot/initrd.img', gzipSync(initrd, { level: 6 }))
}
