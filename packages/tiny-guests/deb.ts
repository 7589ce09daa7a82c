// Reads Debian packages: dpkg-deb decompresses, and the tar archive inside is read as it comes, so that nothing has
// to be written to disk that is not wanted, and modes are kept whoever runs this.
import { contentOf, readTar, type TarEntry, TarError } from '../../src/platform/tar.ts'
import { outputOf } from './programs.ts'
import type { Entry, Tree } from './tree.ts'

/** Puts those files and links of a package that are wanted into the tree. Paths are those of a merged /usr. */
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

/** In the image /bin, /sbin and /usr/sbin are all links to /usr/bin, so that the path never matters, and /lib one to
 *  /usr/lib; packages have files under each of them. */
export const mergedPath = (path: string): string =>
  path
    .replace(/^\.?\/*/, '')
    .replace(/^(bin|sbin|lib|lib64)(?=\/)/, 'usr/$1')
    .replace(/^usr\/sbin(?=\/)/, 'usr/bin')

/** Hard links become relative-free symbolic ones: the same file under another name is all that is meant here. */
async function entryOf(entry: TarEntry): Promise<Entry | undefined> {
  const { type, mode, target } = entry
  if (type === '0') return { kind: 'file', mode, data: await contentOf(entry) }
  if (type === '2') return { kind: 'link', mode: 0o777, target }
  return type === '1' ? { kind: 'link', mode: 0o777, target: `/${mergedPath(target)}` } : undefined
}
