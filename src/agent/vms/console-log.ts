// The end of a log file, and what is written to it from then on.
import { type FSWatcher, watch } from 'node:fs'
import fs from 'node:fs/promises'
import { wait } from '../../platform/retry.ts'

interface LogBounds {
  readonly follow: boolean
  /** Only so many lines from the end. */
  readonly tail: number | undefined
  readonly signal: AbortSignal
}

const chunkBytes = 64 * 1024
/** Who asks for everything gets this much of the end. */
const maxBytes = 16 * 1024 * 1024
/** Not every file system sends events of changes. */
const lookAgainMs = 2_000

/** Ends at the end of the file, or with `follow` when the signal aborts. A file that is not there yet is empty. */
export async function* followConsoleLog(file: string, { follow, tail, signal }: LogBounds): AsyncGenerator<Uint8Array> {
  let position = await startOf(file, tail)
  const bell = follow ? hang(file) : undefined
  try {
    while (!signal.aborted) {
      const rung = bell?.next()
      const chunk = await readAt(file, position)
      if (chunk === 'shorter') position = 0
      else if (chunk.length > 0) {
        position += chunk.length
        yield chunk
      } else if (rung) await wait(lookAgainMs, AbortSignal.any([signal, rung])).catch(() => undefined)
      else return
    }
  } finally {
    bell?.close()
  }
}

/** Where the last lines begin. */
async function startOf(file: string, tail: number | undefined): Promise<number> {
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
      // The newline at the very end ends the last line; it does not begin another.
      if (chunk[at] === 10 && !isLast && ++newlines === tail) return begin + at + 1
    }
  }
  return tail === 0 ? size : first
}

/** shorter: the file was begun anew. */
async function readAt(file: string, position: number, bytes = chunkBytes): Promise<Uint8Array | 'shorter'> {
  const handle = await fs.open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return position > 0 ? 'shorter' : Buffer.alloc(0)
  try {
    if ((await handle.stat()).size < position) return 'shorter'
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, position)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

interface Bell {
  /** Aborts at the next change from now on. */
  next(): AbortSignal
  close(): void
}

function hang(file: string): Bell {
  let rings = new AbortController()
  let watcher: FSWatcher | undefined
  const open = (): void => {
    try {
      watcher ??= watch(file, { persistent: false }, () => rings.abort()).on('error', () => undefined)
    } catch {
      // Not there yet; looked for again.
    }
  }
  return {
    next() {
      open()
      rings = new AbortController()
      return rings.signal
    },
    close: () => watcher?.close(),
  }
}
