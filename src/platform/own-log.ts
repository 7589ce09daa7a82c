// Keeps a log file small that somebody else has opened for our output (launchd does, and rotates nothing): its content
// moves to `FILE.1` and the file is emptied. Whoever writes appends, so nothing is written into a hole.
import fs from 'node:fs/promises'
import { startLoop } from './loop.ts'

const everyMs = 60_000
const largestBytes = 32 * 1_048_576

/** Does nothing without a file. Returns how to stop. */
export function lookAfterLog(file: string | undefined): () => Promise<void> {
  if (!file) return async () => undefined
  const loop = startLoop({ everyMs, run: async () => void (await rotate(file)), failed: () => undefined })
  return () => loop.stop()
}

/** What is written between the copy and the cut is lost: a line or two at most, once in 32 MiB. */
export async function rotate(file: string, maxBytes = largestBytes): Promise<boolean> {
  const { size } = await fs.stat(file).catch(() => ({ size: 0 }))
  if (size <= maxBytes) return false
  await fs.copyFile(file, `${file}.1`)
  await fs.truncate(file)
  return true
}
