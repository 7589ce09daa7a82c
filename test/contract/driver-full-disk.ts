// A VM whose host has no room left, in a separate mount namespace: node driver-full-disk.ts. Throws on failure.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { exec } from '../../src/platform/exec.ts'
import { eventually } from '../support/tools/eventually.ts'
import { activeDisk, blankImage } from './driver-blank-vm.ts'
import { specify } from './driver-vm.ts'

const mib = 2 ** 20

/**
 * A boot sector that waits for two seconds and then writes 60 MiB to its disk, 32 KiB at a time:
 * xor ax,ax; mov ds,ax; mov cx,1eh; mov dx,8480h; mov ah,86h; int 15h; mov dl,80h; mov si,7c2ah;
 * next: mov ax,4300h; int 13h; add dword [si+8],64; cmp dword [si+8],1e000h; jb next; rest: hlt; jmp rest; the packet
 */
const writer = Buffer.from(
  '31c08ed8b91e00ba8084b486cd15b280be2a7cb80043cd1366834408406681' +
    '7c0800e0010072ecf4ebfd' +
    '10004000008000004000000000000000',
  'hex',
)

async function image(folder: string, digest: string) {
  const blank = await blankImage('amd64', folder, digest)
  const sector = Buffer.alloc(512)
  writer.copy(sector)
  sector.writeUInt16LE(0xaa55, 510)
  const disk = await fs.open(blank.disk, 'r+')
  await disk.write(sector, 0, sector.length, 0)
  await disk.close()
  return blank
}

const signal = AbortSignal.timeout(160_000)
const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-full-'))
const folder = path.join(root, 'vm')
const filler = path.join(folder, 'filler')
await fs.mkdir(folder)
await exec('mount', ['-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', folder])
const vm = await specify({ architecture: 'amd64', image }, root, { forwards: [] })
const driver = new QemuDriver({ network: 'user' })
const handle = await driver.create(vm, folder)
const state = async () => (await driver.inspect(handle)).state
try {
  const { bavail, bsize } = await fs.statfs(folder)
  await exec('fallocate', ['-l', String(bavail * bsize - 4 * mib), filler])
  await driver.start(handle, vm, signal)
  await eventually(async () => assert.equal(await state(), 'failed'))
  const observed = await driver.inspect(handle)
  assert.match(observed.state === 'failed' ? observed.problem : '', /disk is full/)
  await driver.probe()
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.equal(await state(), 'failed', 'as long as there is no room')
  await fs.rm(filler)
  let isTold = false
  driver.follow(handle, () => {
    isTold = true
  })
  await driver.probe()
  await eventually(async () => assert.ok(isTold))
  assert.equal(await state(), 'running')
  const written = async () => (await fs.stat(await activeDisk(handle))).size
  await eventually(async () => assert.ok((await written()) > 60 * mib))
  assert.equal(await state(), 'running')
  // No room for the memory, and none for anything.
  const room = await fs.statfs(folder)
  await exec('fallocate', ['-l', String(room.bavail * room.bsize - mib), filler])
  const full = /disk is full.*keeps running/
  await assert.rejects(driver.capturing.capture(handle, vm, { id: 'a', withMemory: true }, signal), full)
  assert.equal(await state(), 'running', 'it goes on')
  await exec('dd', ['if=/dev/zero', `of=${filler}.2`, 'bs=4k']).catch(({ message }) =>
    assert.match(message, /No space/),
  )
  await assert.rejects(driver.capturing.capture(handle, vm, { id: 'a', withMemory: true }, signal), full)
  assert.equal(await state(), 'running')
  assert.deepEqual(await driver.capturing.list(handle), [])
  await driver.stop(handle, { graceSeconds: 0 })
  assert.equal(await state(), 'stopped', 'it can be stopped on a full disk')
} finally {
  await driver.stop(handle, { graceSeconds: 0 })
  await driver.close()
  await exec('umount', [folder])
  await fs.rm(root, { recursive: true })
}
