// Builds the Linux images of images.ts, such as tiny-amd64, from Debian's packages. An image is a folder of its name that
// exists completely or not at all; building an existing image does nothing.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent } from '../../src/platform/files.ts'
import { makeTemporary, removeStale } from '../../src/platform/temporary-folder.ts'
import { type Architecture, commandLine } from './architectures.ts'
import { unpack } from './deb.ts'
import { digestOf } from './digest.ts'
import { diskBytes, makeDisk } from './disk.ts'
import { addBootFiles, efiTree } from './firmware.ts'
import { initScript } from './guest-boot.ts'
import { type GuestName, guests } from './images.ts'
import { cpioArchive } from './initrd.ts'
import { keptKernel } from './kept-kernel.ts'
import { addModules, type Kernel } from './kernel.ts'
import { diskModules, earlyModules, otherModules } from './modules.ts'
import { fetchPackages } from './packages.ts'
import { rootTree } from './root.ts'
import { Tree } from './tree.ts'

export { architectures } from './architectures.ts'
export { type GuestName, guests } from './images.ts'
export { missingPrograms } from './programs.ts'

/** The content of `image.json`. Paths are relative to the image's folder. */
export interface GuestImage {
  readonly formatVersion: 1
  readonly architecture: Architecture
  readonly format: 'raw'
  readonly virtualSizeBytes: number
  readonly disk: string
  readonly boot: {
    readonly kind: 'kernel'
    readonly kernel: string
    readonly initrd: string
    readonly commandLine: string
  }
  readonly digest: string
}

interface BuildOptions {
  readonly name: GuestName
  /** For images and downloaded packages; created if necessary. */
  readonly folder: string
  readonly signal: AbortSignal
  /** Called with a line at a time. */
  readonly progress?: (message: string) => void
}

/** Undefined until the image has been built. */
export async function guestImage(folder: string, name: GuestName): Promise<GuestImage | undefined> {
  const text = await readFileIfPresent(path.join(folder, name, 'image.json'))
  return text === undefined ? undefined : (JSON.parse(text) as GuestImage)
}

/** Needs fewer programs than the build, which then finds the packages. */
export async function downloadPackages({ name, folder, signal, progress = () => {} }: BuildOptions): Promise<void> {
  await fetchPackages({ folder, guest: guests[name], signal, progress })
}

export async function buildGuest({ name, folder, signal, progress = () => {} }: BuildOptions): Promise<void> {
  await removeStale(folder)
  if (await guestImage(folder, name)) return
  const guest = guests[name]
  const { architecture } = guest
  const packages = await fetchPackages({ folder, guest, signal, progress })
  await using temporary = await makeTemporary(folder, name)
  const inside = (file: string): string => path.join(temporary.path, file)

  progress(`unpacking ${packages.userland.length + 1} packages for ${architecture}`)
  const userland = new Tree()
  const [kernel] = await Promise.all([
    keptKernel(packages.kernel, architecture, [...earlyModules, ...diskModules, ...otherModules], signal),
    (async () => {
      for (const deb of packages.userland) await unpack(deb, userland, () => true, signal)
    })(),
  ])
  progress(`making the disk of ${name}`)
  const initrd = cpioArchive(initialTree(userland, kernel))
  const root = rootTree(name, userland, kernel)
  addBootFiles(root, kernel, initrd)
  await fs.writeFile(inside('vmlinuz'), kernel.image)
  await fs.writeFile(inside('initrd.img'), initrd)
  await makeDisk(inside('disk.raw'), { root, efi: efiTree(architecture, userland) }, signal)
  const image: GuestImage = {
    formatVersion: 1,
    architecture,
    format: 'raw',
    virtualSizeBytes: diskBytes,
    disk: 'disk.raw',
    boot: { kind: 'kernel', kernel: 'vmlinuz', initrd: 'initrd.img', commandLine: commandLine(architecture) },
    digest: `sha256:${await digestOf(inside('disk.raw'), signal)}`,
  }
  await fs.writeFile(inside('image.json'), `${JSON.stringify(image, undefined, 2)}\n`)
  for (const file of ['disk.raw', 'vmlinuz', 'initrd.img', 'image.json']) await syncFile(inside(file))
  signal.throwIfAborted()
  await temporary.become(path.join(folder, name))
}

function initialTree(userland: Tree, kernel: Kernel): Tree {
  const busybox = userland.get('usr/bin/busybox')
  if (!busybox) throw new Error('the package busybox-static has no busybox in it')
  const tree = new Tree().script('init', initScript(earlyModules)).link('lib', 'usr/lib').add('bin/busybox', busybox)
  for (const name of ['dev', 'proc', 'sys', 'mnt']) tree.folder(name)
  // The script's output needs a console.
  tree.add('dev/console', { kind: 'device', major: 5, minor: 1, mode: 0o600 })
  addModules(tree, kernel, [...earlyModules, ...diskModules])
  return tree
}

async function syncFile(file: string): Promise<void> {
  const handle = await fs.open(file, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
