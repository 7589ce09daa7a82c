// Reads Debian packages: dpkg-deb decompresses, and the tar archive inside is read as a stream, so that only requested
// files are kept and modes are preserved without root.
import { contentOf, readTar, type TarEntry, TarError } from '../../src/platform/tar.ts'
import { outputOf } from './programs.ts'
import type { Entry, Tree } from './tree.ts'

/** Adds the requested files and links of a package to the tree, under paths of a merged /usr. */
export async function unpack(
  deb: string,
  tree: Tree,
  isWanted: (path: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const entry of readTar(outputOf('dpkg-deb', ['--fsys-tarfile', deb], { signal }))) {
      const path = mergedPath(entry.name)
      const found = path !== '' && isWanted(path) ? await entryOf(entry) : undefined
      if (found) tree.add(path, found)
    }
  } catch (error) {
    if (!(error instanceof TarError)) throw error
    throw new Error(`${deb} is damaged (${error.message}); remove it and download it again`, { cause: error })
  }
}

/**
 * In the image /bin, /sbin and /usr/sbin are links to /usr/bin, and /lib is one to /usr/lib. Packages have files under
 * each of them.
 */
export const mergedPath = (path: string): string =>
  path
    .replace(/^\.?\/*/, '')
    .replace(/^(bin|sbin|lib|lib64)(?=\/)/, 'usr/$1')
    .replace(/^usr\/sbin(?=\/)/, 'usr/bin')

/** Hard links become absolute symbolic links. */
async function entryOf(entry: TarEntry): Promise<Entry | undefined> {
  const { type, mode, target } = entry
  if (type === '0') return { kind: 'file', mode, data: await contentOf(entry) }
  if (type === '2') return { kind: 'link', mode: 0o777, target }
  return type === '1' ? { kind: 'link', mode: 0o777, target: `/${mergedPath(target)}` } : undefined
}
