// A real guest that waits for a pool: it is unreachable, and once it is claimed it has the VM's identity before its
// ports open.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { probeSsh } from '../../src/agent/vms/guest-watch.ts'
import type { BaseImage, Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { waitingAddress } from '../../src/rules/ports.ts'
import { openGuest, testedArchitectures } from '../support/guests/guest.ts'
import { tinyBase } from '../support/guests/tiny-base.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'
import { tracesOf } from './driver-blank-vm.ts'
import { specify } from './driver-vm.ts'

const ip = '127.0.0.1'
const waiting = waitingAddress(ip)
const timeoutMs = 300_000
const signal = () => AbortSignal.timeout(120_000)

for (const architecture of testedArchitectures)
  describe(`QEMU guest that waits for a pool (${architecture})`, () => {
    const driver = new QemuDriver()
    const handles: Handle[] = []
    let root: string
    let image: BaseImage
    before(async () => {
      root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-warm-'))
      image = await tinyBase(architecture)
    })
    after(async () => {
      for (const handle of handles) {
        await driver.destroy(handle)
        assert.deepEqual(await tracesOf(handle), [])
      }
      await driver.close()
      await fs.rm(root, { recursive: true, force: true })
    })

    async function slot(uid: string): Promise<{ handle: Handle; vm: VmSpec; ssh: number }> {
      const ssh = await freePort()
      const forwards = [{ protocol: 'tcp' as const, hostPort: ssh, guestPort: 22 }]
      const base = { uid, name: `warm-${uid}`, memoryMiB: 256, forwards, ip: waiting, metadata: {} }
      const vm = await specify({ architecture, image: async () => image }, root, base)
      const handle = await driver.create(vm, path.join(root, uid))
      handles.push(handle)
      await driver.start(handle, vm, signal())
      await eventually(async () => assert.ok('ok' in (await probeSsh({ ip: waiting, port: ssh }, signal()))), timeoutMs)
      await eventually(async () => assert.equal(await driver.warm?.prepare(handle, vm, signal()), true), timeoutMs)
      return { handle, vm, ssh }
    }

    /** Whether it has its port on its node's address, and where it waits. */
    const holders = (handle: Handle, port: number) =>
      Promise.all([ip, waiting].map((address) => driver.ports.holds(handle, port, address)))

    it('two slots become two VMs: name, metadata, clock, keys and random numbers are their own, and ports open last', async () => {
      const slots = [await slot('one'), await slot('two')]
      const seen: string[][] = []
      for (const { handle, vm, ssh } of slots) {
        assert.equal(await isOpen(ip, ssh), false, 'a slot is reached on the address of its node')
        assert.deepEqual(await holders(handle, ssh), [false, true])
        const name = `vm-${vm.uid}`
        const claimed = { ...vm, name, ip, metadata: { greeting: `of ${name}` } }
        assert.ok(driver.warm)
        const isReady = (readyCommand: string) => driver.warm?.prepare(handle, { ...vm, readyCommand }, signal())
        assert.equal(await isReady('test -e \'/run/it "is" ready\''), false, 'a command that fails passed')
        assert.equal(await isReady(`: > '/run/it "is" ready'; hostname | grep -qx warm-${vm.uid}`), true)
        assert.equal(await isReady('test -e \'/run/it "is" ready\''), true)
        assert.equal(await driver.warm.prepare(handle, vm, signal()), true, 'again, as after a kill of the agent')
        assert.deepEqual(await driver.warm.claim(handle, claimed, signal()), {})
        assert.equal(await isOpen(waiting, ssh), false, 'it is still reached where it waited')
        assert.deepEqual(await holders(handle, ssh), [true, false])
        // Again, as after a kill of the agent.
        assert.deepEqual(await driver.warm.claim(handle, claimed, signal()), {})
        using guest = await openGuest({ ip, ssh }, { user: 'root' }, timeoutMs)
        const askedMs = Date.now()
        const said = await guest.run(
          'date +%s; hostname; wget -qO- http://169.254.169.254/metadata/greeting; ' +
            'cat /etc/dropbear/*_host_key | sha256sum; head -c 32 /dev/urandom | sha256sum',
        )
        const [time = '', ...rest] = said.split('\n')
        const [behindMs, aheadMs] = [askedMs - Number(time) * 1_000, Number(time) * 1_000 - Date.now()]
        assert.ok(behindMs < 3_000 && aheadMs < 3_000, `${time} at ${askedMs}`)
        assert.deepEqual(rest.slice(0, 2), [name, JSON.stringify({ value: `of ${name}` })])
        seen.push(rest.slice(2))
        assert.deepEqual(await driver.inspect(handle), { state: 'running' })
      }
      const [one = [], two = []] = seen
      assert.notEqual(one[0], two[0], 'both have the same host keys')
      assert.notEqual(one[1], two[1], 'both have the same random numbers')
    })

    it('a slot that is parked has no process, and is the VM when it goes on: name, metadata, clock, then its ports', async () => {
      const { handle, vm, ssh } = await slot('parked')
      assert.ok(driver.warm)
      await assert.rejects(driver.warm.park(handle, AbortSignal.abort(new Error('called off'))), /called off/)
      assert.deepEqual(await driver.inspect(handle), { state: 'running' }, 'what was not parked stays paused')
      await driver.warm.park(handle, signal())
      await driver.warm.park(handle, signal())
      assert.deepEqual(await driver.inspect(handle), { state: 'suspended' })
      assert.equal(await isOpen(waiting, ssh), false, 'something listens for it')
      assert.deepEqual(await holders(handle, ssh), [false, false])
      // As another program of this host, which finds the port free.
      const stranger = net.createServer().listen(ssh, ip)
      await once(stranger, 'listening')
      assert.equal(await driver.ports.holds(handle, ssh, ip), false)
      stranger.close()
      await once(stranger, 'close')
      const parkedMs = Date.now()
      // The clock of the guest stops in the pause.
      await eventually(() => assert.ok(Date.now() - parkedMs > 4_000))
      const claimed = { ...vm, name: 'vm-parked', ip, metadata: { greeting: 'hello' } }
      assert.deepEqual(await driver.warm.claim(handle, claimed, signal()), {})
      assert.deepEqual(await driver.inspect(handle), { state: 'running' })
      assert.equal(await isOpen(waiting, ssh), false, 'it is still reached where it waited')
      assert.deepEqual(await driver.warm.claim(handle, claimed, signal()), {}, 'again, as after a kill of the agent')
      using guest = await openGuest({ ip, ssh }, { user: 'root' }, timeoutMs)
      const askedMs = Date.now()
      const said = await guest.run('date +%s; hostname; wget -qO- http://169.254.169.254/metadata/greeting')
      const [time = '', ...rest] = said.split('\n')
      const [behindMs, aheadMs] = [askedMs - Number(time) * 1_000, Number(time) * 1_000 - Date.now()]
      assert.ok(behindMs < 3_000 && aheadMs < 3_000, `${time} at ${askedMs}`)
      assert.deepEqual(rest, ['vm-parked', JSON.stringify({ value: 'hello' })])
      assert.deepEqual(
        (await fs.readdir(handle.folder)).filter((name) => name.startsWith('parked')),
        [],
      )
    })
  })

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
