// A guest that is captured while it runs, and resumes in other VMs under their identity: part of the tests of real
// guests.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import type { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { macAddress } from '../../src/drivers/qemu/network/identity.ts'
import { fileOnDisk } from '../support/guests/disk-files.ts'
import { type Guest, openGuest } from '../support/guests/guest.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'
import { captureNode } from './driver-disk.ts'
import { savedImage } from './driver-saved-image.ts'

interface Source {
  readonly root: string
  readonly driver: QemuDriver
  readonly handle: Handle
  readonly vm: VmSpec
  readonly guest: Guest
}

const signal = () => AbortSignal.timeout(120_000)
/** For a guest on a machine that has much else to do. */
const timeoutMs = 120_000
const counting = '(i=0; while usleep 100000; do i=$((i+1)); echo $i > /tmp/counter; done) > /dev/null 2>&1 &'
const bootId = 'cat /proc/sys/kernel/random/boot_id'

export async function goesOnElsewhere({ root, driver, handle, vm, guest }: Source): Promise<void> {
  await guest.run(`echo before > /root/before; sync; ${counting}`)
  // Its guest agent has opened the port.
  await eventually(
    async () => assert.match(await guest.run('ls -l /proc/[0-9]*/fd 2>&1; true'), /dev\/vport/),
    timeoutMs,
  )
  const boot = await guest.run(bootId)
  const capture = (id: string) => driver.capturing.capture(handle, vm, { id, withMemory: true }, signal())
  await capture('earlier')
  await guest.run('echo between > /root/between; sync')
  // A clock that is years behind: a resume that does not set it is noticed, even on a slow machine.
  await guest.run('date -s @1600000000 > /dev/null')
  const saved = await capture('saved')
  await guest.run(`date -s @${Math.floor(Date.now() / 1_000)} > /dev/null`)
  // By the same connection: nothing of it was cut.
  await guest.run('echo after > /root/after; sync')
  assert.equal(await guest.run(bootId), boot)
  assert.equal(saved.layers.length, 2)
  assert.equal((await fs.stat(saved.memory?.file ?? '')).mode & 0o777, 0o600)

  const image = await savedImage(saved, vm.image, root)
  const clock = await emulatedClock(guest)
  const others: { handle: Handle; vm: VmSpec; ssh: number }[] = []
  const another = async (name: string, change: Partial<VmSpec> = {}) => {
    const ssh = await freePort()
    const forwards = [{ protocol: 'tcp' as const, hostPort: ssh, guestPort: 22 }]
    const screen = { port: await freePort(), width: 800, height: 600 }
    const own: VmSpec = { ...vm, uid: crypto.randomUUID(), name, image, forwards, screen, metadata: { greeting: name } }
    const other = {
      vm: { ...own, ...change },
      ssh,
      handle: await driver.create({ ...own, ...change }, path.join(root, name)),
    }
    others.push(other)
    return { ...other, started: await driver.start(other.handle, other.vm, signal()) }
  }
  const bootsWhatDoesNotFit = async () => {
    const start = async (name: string, change: Partial<VmSpec>) => {
      const { started, handle: one } = await another(name, change)
      assert.deepEqual(await driver.inspect(one), { state: 'running' })
      await driver.destroy(one)
      return started.note ?? ''
    }
    assert.equal(await start('cold', { isCold: true }), '')
    assert.match(
      await start('other', { memoryMiB: 320 }),
      /booted from the disk.*memory in MiB was 256 and is 320 here/,
    )
    const torn = path.join(root, 'torn.memory')
    await fs.copyFile(image.memory?.file ?? '', torn)
    await fs.truncate(torn, 20_000_000)
    const memory = { file: torn, description: image.memory?.description ?? {} }
    assert.match(
      await start('torn', { image: { ...image, memory } }),
      /booted from the disk.*load of migration failed/s,
    )
    // A second time it boots: its disk is its own by now.
    const [second] = others
    if (second) assert.deepEqual(await driver.start(second.handle, second.vm, signal()), {})
  }
  try {
    const resumed = await Promise.all(['second', 'third'].map((name) => another(name)))
    for (const { vm: own, ssh, started } of resumed) {
      assert.equal(started.note, undefined)
      using inside = await openGuest({ ip: own.ip, ssh }, { user: 'root' }, timeoutMs)
      assert.equal(await inside.run(bootId), boot, 'it has not booted')
      assert.equal(await inside.run('cat /root/before /root/between'), 'before\nbetween')
      await assert.rejects(inside.run('cat /root/after'), /No such file/)
      const counted = Number(await inside.run('cat /tmp/counter'))
      await eventually(async () => assert.ok(Number(await inside.run('cat /tmp/counter')) > counted), timeoutMs)
      assert.equal(await inside.run('hostname'), own.name)
      for (const card of [0, 1])
        assert.equal(await inside.run(`cat /sys/class/net/eth${card}/address`), macAddress(own.uid, card))
      const asked = Date.now() / 1_000
      const told = Number(await inside.run('date +%s'))
      const allowed = 2 + (await clock.error())
      assert.ok(told > asked - allowed && told < Date.now() / 1_000 + allowed, `${told} at ${asked}`)
      assert.match(await inside.run('wget -qO- http://169.254.169.254/metadata/greeting'), new RegExp(own.name))
    }
    const [{ handle: second, vm: own, ssh } = assert.fail()] = resumed
    using inside = await openGuest({ ip: own.ip, ssh }, { user: 'root' }, timeoutMs)
    // A guest that does not answer in two seconds is captured without its help: a guest that gets no time from its host
    // is tried again.
    let tries = 0
    await eventually(async () => {
      const id = `flushed-${++tries}`
      await inside.run(`echo ${id} > /root/${id}`)
      const flushed = await driver.capturing.capture(second, own, { id, withMemory: false }, signal())
      const found = await fileOnDisk(captureNode(flushed, image), image.disk, `/root/${id}`)
      assert.equal(found, `${id}\n`, 'a capture has what the guest had not written')
    }, timeoutMs)
    for (const { handle: one } of resumed) await driver.stop(one, { graceSeconds: 0 })
    // The rest has nothing to do with the architecture.
    if (vm.architecture === 'amd64') await bootsWhatDoesNotFit()
  } finally {
    for (const { handle: one } of others) await driver.destroy(one)
    for (const id of ['earlier', 'saved']) await driver.capturing.release(handle, id)
  }
}

export interface EmulatedClock {
  error(): Promise<number>
}

/**
 * On a host with too much to do an emulated clock runs wild, whatever it was set to: so many seconds since it was asked
 * first.
 */
export async function emulatedClock(guest: Guest): Promise<EmulatedClock> {
  const look = async () => {
    const beforeMs = performance.now()
    const [up = ''] = (await guest.run('cat /proc/uptime')).split(' ')
    return Number(up) - (beforeMs + performance.now()) / 2_000
  }
  const first = await look()
  return { error: async () => Math.max(0, Math.abs((await look()) - first) - 1) }
}
