// Rotates the log file that launchd opened for this process, because launchd does not: copies it to `FILE.1` and
// truncates it. The file is opened for appending, so no hole results.
import fs from 'node:fs/promises'
import { startLoop } from './loop.ts'

const everyMs = 60_000
const maxLogBytes = 32 * 1_048_576

/** Does nothing without a file. Returns a function that ends the rotation. */
export function lookAfterLog(file: string | undefined): () => Promise<void> {
  if (!file) return async () => undefined
  const loop = startLoop({ everyMs, run: async () => void (await rotate(file)), failed: () => undefined })
  return () => loop.stop()
}

/** Lines that are written between the copy and the truncation are lost: one or two per 32 MiB. */
export async function rotate(file: string, maxBytes = maxLogBytes): Promise<boolean> {
  const { size } = await fs.stat(file).catch(() => ({ size: 0 }))
  if (size <= maxBytes) return false
  await fs.copyFile(file, `${file}.1`)
  await fs.truncate(file)
  return true
}
