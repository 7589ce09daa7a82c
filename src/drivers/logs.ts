// Logs of a VM. A guest can make them grow, so the agent cuts them while they are being written. Without an agent they
// keep growing.
import { constants, openSync } from 'node:fs'
import fs from 'node:fs/promises'

const mib = 1_048_576

interface LogLimit {
  /** Larger files are cut. */
  readonly largestBytes: number
  /** What is kept of their end. */
  readonly keptBytes: number
}
export const consoleLimit: LogLimit = { largestBytes: 16 * mib, keptBytes: 4 * mib }
export const programLimit: LogLimit = { largestBytes: 4 * mib, keptBytes: mib }

/** Truncates and opens for appending: after a cut, writers continue at the new end and leave no hole. */
export const openLog = (file: string): number =>
  openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND, 0o600)

/** Moves the end to the beginning, then truncates. A crash in between loses nothing of the end. */
export async function trimLog(file: string, { largestBytes, keptBytes }: LogLimit): Promise<void> {
  const { size } = await fs.stat(file).catch(() => ({ size: 0 }))
  if (size <= largestBytes) return
  const handle = await fs.open(file, 'r+')
  try {
    const end = Buffer.alloc(keptBytes)
    const { bytesRead } = await handle.read(end, 0, keptBytes, size - keptBytes)
    // The kept part begins with a whole line.
    const kept = end.subarray(end.subarray(0, bytesRead).indexOf(10) + 1, bytesRead)
    await handle.write(kept, 0, kept.length, 0)
    await handle.truncate(kept.length)
  } finally {
    await handle.close()
  }
}

/** Returns the last 8 KiB; empty if there is no file. */
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
