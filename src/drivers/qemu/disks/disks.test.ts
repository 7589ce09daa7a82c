// A disk has the backing file that svc3 named, whatever its header says.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../../../api/vms/vm-shape.ts'
import { exec } from '../../../platform/exec.ts'
import type { VmSpec } from '../../driver.ts'
import { takeCapture } from '../captures/capture.ts'
import { readCapture, releaseCapture } from './captures.ts'
import { activeOf, requireChain } from './chain.ts'
import { baseOf, createDisk, diskBytes, diskNode, diskNodeOn, growDisk, replaceDisk } from './disks.ts'
import { maxFrozen, mergeFrozen } from './merge.ts'

const mib = 2 ** 20

describe('disk of a QEMU VM', () => {
  let root: string
  before(async () => {
    root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-disks-'))
  })
  after(() => fs.rm(root, { recursive: true }))

  const vmOn = (disk: string, format: 'raw' | 'qcow2'): VmSpec => ({
    uid: 'u',
    name: 'vm',
    architecture: 'amd64',
    cpu: 1,
    memoryMiB: 64,
    image: {
      name: 'i',
      digest: `sha256:${path.basename(disk)}`,
      disk,
      format,
      virtualSizeBytes: 8 * mib,
      boot: { kind: 'firmware' },
    },
    ip: '127.0.0.1',
    forwards: [],
    metadata: {},
    ...machineDefaults,
  })

  /** What a guest would read at the start of its disk. */
  async function content(folder: string): Promise<string> {
    const to = path.join(folder, 'out.raw')
    await exec('qemu-img', ['convert', '-O', 'raw', `json:${JSON.stringify(await diskNode(folder))}`, to])
    const handle = await fs.open(to, 'r')
    const { buffer } = await handle.read(Buffer.alloc(6), 0, 6, 0)
    await handle.close()
    return buffer.toString('latin1')
  }

  it('the disk of a QEMU VM has the bytes of a raw base, also if they look like an overlay on a file of the host', async () => {
    const secret = path.join(root, 'secret')
    await fs.writeFile(secret, 'SECRET'.padEnd(mib))
    const hostile = path.join(root, 'hostile.raw')
    await exec('qemu-img', ['create', '-q', '-f', 'qcow2', '-u', '-b', secret, '-F', 'raw', hostile, String(8 * mib)])
    await fs.truncate(hostile, 8 * mib)
    const folder = path.join(root, 'a')
    await createDisk(folder, vmOn(hostile, 'raw'))
    assert.match(await content(folder), /^QFI/)
    await growDisk(folder, 16 * mib)
    assert.equal(await diskBytes(folder), 16 * mib)
    assert.match(await content(folder), /^QFI/)
  })

  it('the disk of a QEMU VM does not follow the backing file of a qcow2 base', async () => {
    const secret = path.join(root, 'secret')
    const hostile = path.join(root, 'hostile.qcow2')
    await exec('qemu-img', ['create', '-q', '-f', 'qcow2', '-u', '-b', secret, '-F', 'raw', hostile, String(8 * mib)])
    const folder = path.join(root, 'b')
    await createDisk(folder, vmOn(hostile, 'qcow2'))
    assert.equal(await content(folder), '\0\0\0\0\0\0')
  })

  it('the disk of a QEMU VM is not used if it has an unknown backing file', async () => {
    const base = path.join(root, 'base.raw')
    await fs.writeFile(base, Buffer.alloc(8 * mib))
    const folder = path.join(root, 'c')
    await createDisk(folder, vmOn(base, 'raw'))
    await exec('qemu-img', [
      'rebase',
      '-u',
      '-f',
      'qcow2',
      '-b',
      '/etc/passwd',
      '-F',
      'raw',
      path.join(folder, activeOf(await requireChain(folder)).file),
    ])
    await assert.rejects(diskNode(folder), /unknown backing file/)
  })

  it('the disk of a QEMU VM uses the image that it was made from, also after that was moved, and no other', async () => {
    const [base, moved] = [path.join(root, 'base.raw'), path.join(root, 'moved.raw')]
    await fs.writeFile(base, 'BASE'.padEnd(8 * mib))
    const folder = path.join(root, 'e')
    const { image } = vmOn(base, 'raw')
    await createDisk(folder, vmOn(base, 'raw'))
    assert.deepEqual(await diskNodeOn(folder, image), await diskNode(folder))
    await assert.rejects(
      diskNodeOn(folder, { ...image, digest: 'sha256:rebuilt' }),
      /was made from another content of image i .*; revert the VM, or restore/,
    )
    await fs.rename(base, moved)
    assert.match(JSON.stringify(await diskNodeOn(folder, { ...image, disk: moved })), /moved\.raw/)
  })

  it('the frozen layers of a QEMU VM are merged when they are many, and those of a capture stay', async () => {
    const base = path.join(root, 'merge, base.raw')
    await fs.writeFile(base, 'BASE'.padEnd(8 * mib))
    const folder = path.join(root, 'm, n')
    const vm = vmOn(base, 'raw')
    const signal = AbortSignal.timeout(170_000)
    await createDisk(folder, vm)
    for (let index = 0; index <= maxFrozen; index++) {
      const file = path.join(folder, activeOf(await requireChain(folder)).file)
      const write = [`write -P ${65 + index} ${index * 512}k 1M`, 'write -z 640k 64k']
      await exec('qemu-io', ['-f', 'qcow2', ...write.flatMap((one) => ['-c', one]), file])
      if (index === 4) await growDisk(folder, 16 * mib)
      await takeCapture(folder, undefined, { id: `c${index}` }, signal)
    }
    const read = async () => {
      const to = path.join(root, 'merged.raw')
      await exec('qemu-img', ['convert', '-O', 'raw', `json:${JSON.stringify(await diskNode(folder))}`, to])
      return fs.readFile(to)
    }
    const truth = await read()
    for (let index = 1; index <= maxFrozen; index++) await releaseCapture(folder, `c${index}`)
    assert.equal((await requireChain(folder)).layers.length, maxFrozen + 2)
    await mergeFrozen(folder, vm.image, signal)
    const { layers } = await requireChain(folder)
    assert.equal(layers.length, 2)
    assert.ok((await read()).equals(truth), 'it shows the same')
    const kept = await readCapture(folder, 'c0')
    const files = [...layers, ...(kept?.layers ?? [])].map(({ file }) => file)
    assert.equal(new Set(files).size, 3)
    const there = (await fs.readdir(folder)).filter((name) => name.startsWith('disk'))
    assert.deepEqual(there.sort(), files.sort())
    await mergeFrozen(folder, vm.image, signal)
    assert.deepEqual((await requireChain(folder)).layers, layers)
  })

  it('the disk of a QEMU VM changes its image atomically, and is kept if the new one is missing', async () => {
    const [one, two] = [path.join(root, 'one.raw'), path.join(root, 'two.raw')]
    await fs.writeFile(one, 'ONE'.padEnd(8 * mib))
    await fs.writeFile(two, 'TWO'.padEnd(8 * mib))
    const folder = path.join(root, 'd')
    await createDisk(folder, vmOn(one, 'raw'))
    await assert.rejects(replaceDisk(folder, vmOn(path.join(root, 'none.raw'), 'raw')), /has to be fetched again/)
    assert.equal((await baseOf(folder)).digest, 'sha256:one.raw')
    assert.match(await content(folder), /^ONE/)
    await replaceDisk(folder, vmOn(two, 'raw'))
    assert.equal((await baseOf(folder)).digest, 'sha256:two.raw')
    assert.match(await content(folder), /^TWO/)
  })
})
