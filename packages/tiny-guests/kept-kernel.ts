// Caches what was extracted from a kernel's package beside it: decompressing the package would be most of a build.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import { deserialize, serialize } from 'node:v8'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { writeFileAtomically } from '../../src/platform/files.ts'
import type { Architecture } from './architectures.ts'
import { type Kernel, readKernel } from './kernel.ts'

/** Increased with any change of what readKernel() returns. */
const version = 1
const parameters = { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 }

export async function keptKernel(
  deb: string,
  architecture: Architecture,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Kernel> {
  const key = createHash('sha256').update(JSON.stringify([version, architecture, names]))
  const file = `${deb}.${key.digest('hex').slice(0, 12)}.kept`
  const kept = await readKept(file)
  if (kept) return kept
  const kernel = await readKernel(deb, architecture, names, signal)
  const data = zstdCompressSync(serialize(kernel), { params: parameters })
  // A read-only folder of packages must not prevent a build.
  await writeFileAtomically(file, data, { mode: 0o644 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EROFS') throw error
  })
  return kernel
}

/** Undefined if there is no readable cache. */
async function readKept(file: string): Promise<Kernel | undefined> {
  try {
    return deserialize(zstdDecompressSync(await fs.readFile(file))) as Kernel
  } catch {
    return undefined
  }
}
