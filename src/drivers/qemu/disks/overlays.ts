// Overlay files: created by qemu-img with every format given, and synced; callers sync the folder. Headers are read
// here, because a running QEMU's lock keeps qemu-img out.
import fs from 'node:fs/promises'
import { exec } from '../../../platform/exec.ts'

interface Backing {
  /** The name in the header. QEMU does not use it, because its command line names every file. */
  readonly name: string
  readonly format: 'raw' | 'qcow2'
}

/** Creates an empty overlay with clusters of 64 KiB. -u: its size is given, so the backing file is not opened. */
export async function makeOverlay(file: string, { name, format }: Backing, sizeBytes: number): Promise<void> {
  const args = ['create', '-q', '-f', 'qcow2', '-o', 'cluster_size=65536', '-u', '-b', name, '-F', format]
  try {
    await exec('qemu-img', [...args, file, String(sizeBytes)], { timeoutMs: 30_000 })
    await fs.chmod(file, 0o600)
    await syncFile(file)
  } catch (error) {
    await fs.rm(file, { force: true })
    throw error
  }
}

export async function syncFile(file: string): Promise<void> {
  const handle = await fs.open(file, 'r')
  await handle.sync().finally(() => handle.close())
}

interface Header {
  readonly virtualBytes: number
  readonly backingFile: string
}

export async function readHeader(file: string): Promise<Header> {
  const handle = await fs.open(file, 'r')
  try {
    const head = Buffer.alloc(32)
    await handle.read(head, 0, head.length, 0)
    if (head.readUInt32BE(0) !== 0x514649fb) throw new Error(`${file} is not a qcow2 file`)
    const name = Buffer.alloc(Math.min(head.readUInt32BE(16), 1_023))
    await handle.read(name, 0, name.length, Number(head.readBigUInt64BE(8)))
    return { virtualBytes: Number(head.readBigUInt64BE(24)), backingFile: name.toString('utf8') }
  } finally {
    await handle.close()
  }
}
