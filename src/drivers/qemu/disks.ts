// The disk of a VM: a qcow2 overlay on the node's copy of an image. Every format is given, none is guessed, and no
// backing file is followed but the one that we named: a guest can write a header of its choice into its disk.
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../platform/exec.ts'
import { failpoint } from '../../platform/failpoint.ts'
import { readFileIfPresent, syncFolder, writeFileAtomically } from '../../platform/files.ts'
import type { BaseImage, VmSpec } from '../driver.ts'

export const diskFile = 'disk.qcow2'
const basesFile = 'bases.json'

const freshFile = `${diskFile}.new`

/** What a disk may stand on. The overlay's own header says on which of these files it does. */
interface Base {
  readonly disk: string
  readonly format: BaseImage['format']
  readonly digest: string
  /** Of an overlay that is about to take its place: until the rename, which is the one moment of a revert, not so. */
  readonly isNext?: true
}

const isThere = (file: string): Promise<boolean> =>
  fs.access(file).then(
    () => true,
    () => false,
  )

export const hasDisk = (folder: string): Promise<boolean> => isThere(path.join(folder, diskFile))

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
  const now = (await hasDisk(folder)) ? await baseOf(folder).catch(() => undefined) : undefined
  const current = now ? [{ disk: now.disk, format: now.format, digest: now.digest }] : []
  // A leftover of a revert that was cut off says which base is the right one: noted first, removed then.
  await writeBases(folder, current)
  const fresh = path.join(folder, freshFile)
  await fs.rm(fresh, { force: true })
  const sizeBytes = Math.max(virtualSizeBytes, vm.diskBytes ?? 0)
  // -u: QEMU need not open the base, we know its size.
  const args = ['create', '-q', '-f', 'qcow2', '-u', '-b', disk, '-F', format, fresh, String(sizeBytes)]
  await exec('qemu-img', args, { timeoutMs: 30_000 })
  await fs.chmod(fresh, 0o600)
  const handle = await fs.open(fresh, 'r')
  await handle.sync().finally(() => handle.close())
  await writeBases(folder, [...current, { disk, format, digest, isNext: true }])
  failpoint('disk-made')
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
  const isReplaced = !(await isThere(path.join(folder, freshFile)))
  const base = (await readBases(folder)).findLast(
    ({ disk, isNext }) => disk === backingFile && (isReplaced || isNext === undefined),
  )
  if (!base) throw new Error(`the disk in ${folder} stands on a file that svc3 did not name: it is not used`)
  return base
}

/** The disk on the node's copy of its image. An overlay on other content than it was made on would be garbage. */
export async function diskNodeOn(folder: string, image: BaseImage): Promise<Readonly<Record<string, unknown>>> {
  const { digest } = await baseOf(folder)
  if (digest === image.digest) return chain(folder, image)
  throw new Error(
    `the image ${image.name} on this node (${image.digest}) is not the one that the disk of this VM stands on ` +
      `(${digest}); revert the VM, or put the image back`,
  )
}

/** The whole chain, spelled out for qemu-img. */
export const diskNode = async (folder: string): Promise<Readonly<Record<string, unknown>>> =>
  chain(folder, await baseOf(folder))

const chain = (folder: string, base: Pick<Base, 'disk' | 'format'>): Readonly<Record<string, unknown>> => ({
  driver: 'qcow2',
  file: { driver: 'file', filename: path.join(folder, diskFile), discard: 'unmap' },
  discard: 'unmap',
  backing: {
    driver: base.format,
    'read-only': true,
    file: { driver: 'file', filename: base.disk, 'read-only': true },
    ...(base.format === 'qcow2' && { backing: null }),
  },
})

async function readBases(folder: string): Promise<readonly Base[]> {
  const text = await readFileIfPresent(path.join(folder, basesFile))
  return text === undefined ? [] : (JSON.parse(text) as Base[])
}

const writeBases = (folder: string, bases: readonly Base[]): Promise<void> =>
  writeFileAtomically(path.join(folder, basesFile), JSON.stringify(bases))

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
