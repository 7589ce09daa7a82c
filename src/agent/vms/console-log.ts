// Reads the end of a log file, and follows the file as it grows.
import fs from 'node:fs/promises'
import { ifAbsent } from '../../platform/files.ts'
import { wait } from '../../platform/retry.ts'

interface LogBounds {
  readonly follow: boolean
  /** The number of lines from the end; by default all. */
  readonly tail: number | undefined
  readonly signal: AbortSignal
}

const chunkBytes = 64 * 1024
/** The most that is read of a long log, from its end. */
const maxBytes = 16 * 1024 * 1024
const pollMs = 250

/** Ends at the end of the file, or with `follow` when the signal aborts. A missing file counts as empty. */
export async function* followConsoleLog(file: string, { follow, tail, signal }: LogBounds): AsyncGenerator<Uint8Array> {
  let position = await positionOf(file, tail)
  while (!signal.aborted) {
    const chunk = await readAt(file, position)
    if (chunk === 'shorter') position = 0
    else if (chunk.length > 0) {
      position += chunk.length
      yield chunk
    } else if (follow) await wait(pollMs, signal).catch(() => undefined)
    else return
  }
}

/** Returns where the last `tail` lines begin. */
async function positionOf(file: string, tail: number | undefined): Promise<number> {
  const size = (await fs.stat(file).catch(() => undefined))?.size ?? 0
  const first = Math.max(0, size - maxBytes)
  if (tail === undefined) return first
  let newlines = 0
  for (let end = size; end > first; end -= chunkBytes) {
    const begin = Math.max(first, end - chunkBytes)
    const chunk = await readAt(file, begin, end - begin)
    if (chunk === 'shorter') return 0
    for (let at = chunk.length - 1; at >= 0; at--) {
      const isLast = begin + at === size - 1
      // A newline at the end of the file does not begin another line.
      if (chunk[at] === 10 && !isLast && ++newlines === tail) return begin + at + 1
    }
  }
  return tail === 0 ? size : first
}

/** `shorter`: the file was truncated. */
async function readAt(file: string, position: number, bytes = chunkBytes): Promise<Uint8Array | 'shorter'> {
  const handle = await fs.open(file, 'r').catch(ifAbsent(undefined))
  if (!handle) return position > 0 ? 'shorter' : Buffer.alloc(0)
  try {
    if ((await handle.stat()).size < position) return 'shorter'
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, position)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
