// Reads the files under the given paths for the scan, in chunks, and unpacks compressed logs.

import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import zlib from 'node:zlib'
import { notFound } from '../../../api/errors.ts'

export interface ScannedFile {
  /** The path as given, or below the given folder. */
  readonly name: string
  chunks(): AsyncIterable<Uint8Array>
}

const chunkBytes = 2 ** 20
/** Folders with code of others, or without programs. */
const skipped = new Set(['.git', '.hg', '.svn', 'node_modules', '.svc3'])

export async function* filesUnder(
  paths: readonly string[],
  workingDir: string,
  signal: AbortSignal,
): AsyncGenerator<ScannedFile> {
  for (const root of paths) {
    const whole = path.resolve(workingDir, root)
    const stat = await fs.stat(whole).catch(() => undefined)
    if (!stat) throw notFound('files', root, { hint: 'Check the path and its permissions' })
    if (stat.isDirectory()) yield* inFolder(root, whole, signal)
    else yield file(root, whole, signal)
  }
}

async function* inFolder(name: string, folder: string, signal: AbortSignal): AsyncGenerator<ScannedFile> {
  const entries = await fs.readdir(folder, { withFileTypes: true }).catch(() => undefined)
  // Reading it as a file reports why it cannot be read.
  if (!entries) yield file(name, folder, signal)
  for (const entry of (entries ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    signal.throwIfAborted()
    const [shown, whole] = [path.join(name, entry.name), path.join(folder, entry.name)]
    // Symbolic links are skipped, because they may lead out of the folder or in a cycle.
    if (entry.isDirectory() && !skipped.has(entry.name)) yield* inFolder(shown, whole, signal)
    else if (entry.isFile()) yield file(shown, whole, signal)
  }
}

function file(name: string, whole: string, signal: AbortSignal): ScannedFile {
  const isPacked = name.endsWith('.gz')
  return {
    name: isPacked ? name.slice(0, -3) : name,
    chunks: () => {
      const bytes = createReadStream(whole, { highWaterMark: chunkBytes, signal })
      if (!isPacked) return bytes
      const plain = zlib.createGunzip({ chunkSize: chunkBytes })
      bytes.on('error', (error) => plain.destroy(error)).pipe(plain)
      return plain
    },
  }
}
