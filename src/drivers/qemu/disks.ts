// The disk of a VM: a qcow2 overlay on the node's copy of an image. Every format is given, none is guessed, and no
// backing file is followed but the one that we named: a guest can write a header of its choice into its disk.
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../platform/exec.ts'
import { readFileIfPresent, syncFolder, writeFileAtomically } from '../../platform/files.ts'
import type { BaseImage, VmSpec } from '../driver.ts'

export const diskFile = 'disk.qcow2'
const basesFile = 'bases.json'

/** What a disk may stand on. The overlay's own header says on which of them it does, so a revert has one moment. */
interface Base {
  readonly disk: string
  readonly format: BaseImage['format']
  readonly digest: string
}

export const hasDisk = (folder: string): Promise<boolean> =>
  fs.access(path.join(folder, diskFile)).then(
    () => true,
    () => false,
  )

/** A disk that is there stays. */
export async function createDisk(folder: string, vm: VmSpec): Promise<void> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  if (!(await hasDisk(folder))) await replaceDisk(folder, vm)
}

/** A new overlay in place of the old one, by one rename. */
export async function replaceDisk(folder: string, vm: VmSpec): Promise<void> {
  const { disk, format, digest, virtualSizeBytes, name } = vm.image
  await fs.access(disk).catch(() => {
    throw new Error(`the node's copy of image ${name} is not at ${disk}: it has to be fetched again`)
  })
  const others = (await readBases(folder)).filter((base) => base.disk !== disk)
  await writeFileAtomically(path.join(folder, basesFile), JSON.stringify([...others, { disk, format, digest }]))
  const fresh = path.join(folder, `${diskFile}.new`)
  await fs.rm(fresh, { force: true })
  const sizeBytes = Math.max(virtualSizeBytes, vm.diskBytes ?? 0)
  // -u: QEMU need not open the base, we know its size.
  const args = ['create', '-q', '-f', 'qcow2', '-u', '-b', disk, '-F', format, fresh, String(sizeBytes)]
  await exec('qemu-img', args, { timeoutMs: 30_000 })
  await fs.chmod(fresh, 0o600)
  const handle = await fs.open(fresh, 'r')
  await handle.sync().finally(() => handle.close())
  await fs.rename(fresh, path.join(folder, diskFile))
  await syncFolder(folder)
}

export async function growDisk(folder: string, sizeBytes: number): Promise<void> {
  const now = await diskBytes(folder)
  if (sizeBytes === now) return
  if (sizeBytes < now) throw new Error(`the disk has ${now} bytes already and cannot shrink to ${sizeBytes}`)
  const source = `json:${JSON.stringify(await diskNode(folder))}`
  await exec('qemu-img', ['resize', '-q', source, String(sizeBytes)], { timeoutMs: 60_000 })
}

export async function diskBytes(folder: string): Promise<number> {
  return (await readHeader(folder)).virtualBytes
}

export async function baseOf(folder: string): Promise<Base> {
  const { backingFile } = await readHeader(folder)
  const base = (await readBases(folder)).find(({ disk }) => disk === backingFile)
  if (!base) throw new Error(`the disk in ${folder} stands on a file that svc3 did not name: it is not used`)
  return base
}

/** The whole chain, spelled out for -blockdev and for qemu-img. */
export async function diskNode(folder: string): Promise<Readonly<Record<string, unknown>>> {
  const base = await baseOf(folder)
  return {
    driver: 'qcow2',
    file: { driver: 'file', filename: path.join(folder, diskFile), discard: 'unmap' },
    discard: 'unmap',
    backing: {
      driver: base.format,
      'read-only': true,
      file: { driver: 'file', filename: base.disk, 'read-only': true },
      ...(base.format === 'qcow2' && { backing: null }),
    },
  }
}

async function readBases(folder: string): Promise<readonly Base[]> {
  const text = await readFileIfPresent(path.join(folder, basesFile))
  return text === undefined ? [] : (JSON.parse(text) as Base[])
}

/** The head of our own overlay. It is read here and not by qemu-img, which a running QEMU's lock would keep out. */
async function readHeader(folder: string): Promise<{ readonly virtualBytes: number; readonly backingFile: string }> {
  const handle = await fs.open(path.join(folder, diskFile), 'r')
  try {
    const head = Buffer.alloc(32)
    await handle.read(head, 0, head.length, 0)
    if (head.readUInt32BE(0) !== 0x514649fb) throw new Error(`${path.join(folder, diskFile)} is not a qcow2 file`)
    const name = Buffer.alloc(Math.min(head.readUInt32BE(16), 1_023))
    await handle.read(name, 0, name.length, Number(head.readBigUInt64BE(8)))
    return { virtualBytes: Number(head.readBigUInt64BE(24)), backingFile: name.toString('utf8') }
  } finally {
    await handle.close()
  }
}
