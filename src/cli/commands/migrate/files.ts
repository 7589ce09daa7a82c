// Walks the files under some paths for the scan: one after the other, in chunks, with compressed logs unpacked.

import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import zlib from 'node:zlib'
import { notFound } from '../../../api/errors.ts'

export interface ScannedFile {
  /** As it was named, or from there. */
  readonly name: string
  chunks(): AsyncIterable<Uint8Array>
}

const chunkBytes = 2 ** 20
/** What others wrote, or no program at all. */
const skipped = new Set(['.git', '.hg', '.svn', 'node_modules', '.svc3'])

export async function* filesUnder(
  paths: readonly string[],
  workingDir: string,
  signal: AbortSignal,
): AsyncGenerator<ScannedFile> {
  for (const given of paths) {
    const whole = path.resolve(workingDir, given)
    const stat = await fs.stat(whole).catch(() => undefined)
    if (!stat) throw notFound('files', given, { hint: 'Check the path and its permissions' })
    if (stat.isDirectory()) yield* inFolder(given, whole, signal)
    else yield file(given, whole, signal)
  }
}

async function* inFolder(name: string, folder: string, signal: AbortSignal): AsyncGenerator<ScannedFile> {
  const entries = await fs.readdir(folder, { withFileTypes: true }).catch(() => undefined)
  // Reading it as a file reports why it cannot be read.
  if (!entries) yield file(name, folder, signal)
  for (const entry of (entries ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    signal.throwIfAborted()
    const [shown, whole] = [path.join(name, entry.name), path.join(folder, entry.name)]
    // Links are left alone: they lead to what is elsewhere, or round in circles.
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
      // Loaded here: at the top, every command would load it.
      const plain = zlib.createGunzip({ chunkSize: chunkBytes })
      bytes.on('error', (error) => plain.destroy(error)).pipe(plain)
      return plain
    },
  }
}
