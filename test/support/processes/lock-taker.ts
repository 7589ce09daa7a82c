// A process that takes a lock repeatedly and counts how often another one held it at the same time.
import fs from 'node:fs'
import { LockedError, withLockFile } from '../../../src/platform/lock-file.ts'

const [lock = '', inside = '', rounds = '0'] = process.argv.slice(2)
let entries = 0
let overlaps = 0
// It stops after it held the lock at least once, however slow the machine is.
const end = performance.now() + 8_000
while (entries < Number(rounds) && (entries === 0 || performance.now() < end)) {
  try {
    await withLockFile(lock, async () => {
      entries += 1
      try {
        fs.writeFileSync(inside, '', { flag: 'wx' })
      } catch {
        overlaps += 1
      }
      await new Promise((resolve) => setImmediate(resolve))
      fs.rmSync(inside, { force: true })
    })
  } catch (error) {
    if (!(error instanceof LockedError)) throw error
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
process.send?.({ entries, overlaps }, () => process.exit(0))
