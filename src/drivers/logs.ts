// Logs of a VM, which its guest can make grow: opened so that they can be cut while somebody writes, and cut to their end.
// They are cut by the agent; while no agent runs, they grow as the guest likes.
import { constants, openSync } from 'node:fs'
import fs from 'node:fs/promises'

const mib = 1_048_576

interface LogLimit {
  /** Beyond it a file is cut … */
  readonly largestBytes: number
  /** … to so much of its end. */
  readonly keptBytes: number
}
export const consoleLimit: LogLimit = { largestBytes: 16 * mib, keptBytes: 4 * mib }
export const programLimit: LogLimit = { largestBytes: 4 * mib, keptBytes: mib }

/** Begun anew. Appended to, whoever writes: after a cut, writers go on at the new end and leave no hole. */
export const openLog = (file: string): number =>
  openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND, 0o600)

/** Its end is moved to its beginning, then the rest is cut off: killed in between, nothing of the end is lost. */
export async function trimLog(file: string, { largestBytes, keptBytes }: LogLimit): Promise<void> {
  const { size } = await fs.stat(file).catch(() => ({ size: 0 }))
  if (size <= largestBytes) return
  const handle = await fs.open(file, 'r+')
  try {
    const end = Buffer.alloc(keptBytes)
    const { bytesRead } = await handle.read(end, 0, keptBytes, size - keptBytes)
    // Whole lines, where there are lines.
    const kept = end.subarray(end.subarray(0, bytesRead).indexOf(10) + 1, bytesRead)
    await handle.write(kept, 0, kept.length, 0)
    await handle.truncate(kept.length)
  } finally {
    await handle.close()
  }
}

/** The last that was written to it; empty where there is none. */
export async function endOfLog(file: string): Promise<string> {
  const handle = await fs.open(file, 'r').catch(() => undefined)
  if (!handle) return ''
  try {
    const { size } = await handle.stat()
    const bytes = Buffer.alloc(Math.min(size, 8_192))
    await handle.read(bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8')
  } finally {
    await handle.close()
  }
}
