// Reads a file from the disk of a small guest that does not run, as its next boot would find it.
import fs from 'node:fs/promises'
import { exec } from '../../../src/platform/exec.ts'

const sectorBytes = 512

/**
 * `node` is the disk as QEMU's tools take it, `image` the raw one with the same partitions. The journal is replayed first,
 * as at boot. Throws if the file does not exist.
 */
export async function fileOnDisk(node: unknown, image: string, file: string): Promise<string> {
  const { stdout } = await exec('sfdisk', ['--json', image], { timeoutMs: 10_000 })
  const { partitiontable } = JSON.parse(stdout) as { partitiontable: { partitions: { start: number; size: number }[] } }
  const root = partitiontable.partitions.toSorted((one, other) => other.size - one.size)[0]
  if (!root) throw new Error(`${image} has no partitions`)
  const part = { driver: 'raw', offset: root.start * sectorBytes, size: root.size * sectorBytes, file: node }
  const place = `${image}.${crypto.randomUUID()}`
  try {
    await exec('qemu-img', ['convert', '-U', '-O', 'raw', `json:${JSON.stringify(part)}`, place])
    await exec('e2fsck', ['-y', '-E', 'journal_only', place], { timeoutMs: 30_000 })
    const shown = await exec('debugfs', ['-R', `cat ${file}`, place], { timeoutMs: 10_000 })
    if (/not found/.test(shown.stderr)) throw new Error(shown.stderr)
    return shown.stdout
  } finally {
    await fs.rm(place, { force: true })
  }
}
