// The disk of a VM that was made before disks had layers: `disk.qcow2`, and `bases.json` with what it may stand on. It is
// read as a chain of one layer; the first change writes it down as such.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent } from '../../../platform/files.ts'
import type { Base, Chain } from './chain.ts'
import { readHeader } from './overlays.ts'

const diskFile = 'disk.qcow2'
const basesFile = 'bases.json'

/** `isNext`: of an overlay that was about to take the old one's place by a rename. */
type LegacyBase = Base & { readonly isNext?: true }

const isThere = (file: string): Promise<boolean> =>
  fs.access(file).then(
    () => true,
    () => false,
  )

export async function readLegacyChain(folder: string): Promise<Chain | undefined> {
  const text = await readFileIfPresent(path.join(folder, basesFile))
  if (text === undefined || !(await isThere(path.join(folder, diskFile)))) return undefined
  const { backingFile } = await readHeader(path.join(folder, diskFile))
  const isReplaced = !(await isThere(path.join(folder, `${diskFile}.new`)))
  const found = (JSON.parse(text) as LegacyBase[]).findLast(
    ({ disk, isNext }) => disk === backingFile && (isReplaced || isNext === undefined),
  )
  if (!found) throw new Error(`the disk in ${folder} stands on a file that svc3 did not name: it is not used`)
  const { disk, format, digest } = found
  // Its id is the one that it gets with the first change.
  return { version: 1, base: { disk, format, digest }, layers: [{ id: crypto.randomUUID(), file: diskFile }] }
}
