// Writes the FAT file system that firmware reads, with mtools: nothing is mounted.
import { run } from './programs.ts'
import type { Tree } from './tree.ts'

interface FatOptions {
  readonly offsetBytes: number
  readonly sizeBytes: number
  readonly label: string
  /** Of all files, in seconds since 1970, so that the same files give the same bytes. */
  readonly time: string
  readonly signal: AbortSignal
}

/** Formats the part of `file` that begins at `offsetBytes`. */
export async function writeFat(file: string, tree: Tree, options: FatOptions): Promise<void> {
  const { offsetBytes, sizeBytes, label, time, signal } = options
  const environment = { MTOOLSRC: '/dev/null', SOURCE_DATE_EPOCH: time, TZ: 'UTC' }
  const image = ['-i', `${file}@@${offsetBytes}`]
  const geometry = ['-T', `${sizeBytes / 512}`, '-h', '255', '-s', '63', '-c', '4', '-N', '5c3d1f2a', '-v', label]
  await run('mformat', [...image, ...geometry, '::'], { signal, environment })
  for (const [name, entry] of tree.sorted()) {
    if (entry.kind === 'folder') await run('mmd', [...image, `::${name}`], { signal, environment })
    else if (entry.kind !== 'file') throw new Error(`${name}: FAT has files and folders only`)
    else {
      // A full file system is an error message of mcopy, but not an exit code.
      const { problems } = await run('mcopy', [...image, '-', `::${name}`], { signal, environment, input: entry.data })
      if (problems !== '') throw new Error(`/${name} could not be written to the EFI partition: ${problems}`)
    }
  }
}
