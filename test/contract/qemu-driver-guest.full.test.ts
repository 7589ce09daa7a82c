// The QEMU driver as a real guest sees it: network, metadata, a disk that stays, grows and goes back, a clock that
// stands still, a power button, and the host's loopback out of reach.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Architecture } from '../../src/api/architecture.ts'
import type { Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { type Guest, greeting, openGuest, testedArchitectures } from '../support/guests/guest.ts'
import { tinyBase } from '../support/guests/tiny-base.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'
import { freePort } from '../support/tools/free-port.ts'
import { blankImage, processesOf, qemusOf, tracesOf } from './driver-blank-vm.ts'
import { goesOnElsewhere } from './driver-resumes.ts'
import { specify, within } from './driver-vm.ts'

const gib = 2 ** 30
/** Beside a dozen other guests one takes minutes to boot. */
const boots = { timeout: 600_000 }
const secret = 'canary-secret-"ü"-7f3a'
const signal = () => AbortSignal.timeout(120_000)

describe('QEMU guest', { concurrency: true }, () => {
  for (const architecture of testedArchitectures)
    describe(architecture, { concurrency: 1 }, () => {
      const driver = new QemuDriver()
      let root: string
      let handle: Handle
      let vm: VmSpec
      let place: { ip: string; ssh: number }
      // A connection that comes before the guest is up is heard of by it only seconds later: so, short ones first. On a
      // host with too much to do a guest that is up takes seconds to greet.
      const asRoot = async (): Promise<Guest> => {
        let limitMs = 600
        await eventually(async () => {
          limitMs = Math.min(limitMs * 1.15, 20_000)
          assert.match((await greeting(place.ip, place.ssh, limitMs)) ?? '', /^SSH/)
        }, 160_000)
        return openGuest(place, { user: 'root' })
      }

      before(async () => {
        root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-guest-'))
        const ssh = await freePort()
        vm = await specify({ architecture, image: () => tinyBase(architecture) }, root, {
          memoryMiB: 256,
          forwards: [{ protocol: 'tcp', hostPort: ssh, guestPort: 22 }],
          screen: { port: await freePort(), width: 800, height: 600 },
          metadata: { greeting: 'hello', 'a.b_c-1': secret },
          userdata: Buffer.from('#!/bin/sh\necho first boot > /root/userdata-ran\n').toString('base64'),
        })
        place = { ip: vm.ip, ssh }
        handle = await driver.create(vm, path.join(root, 'vm'))
        await driver.start(handle, vm, signal())
      })
      after(async () => {
        await driver.destroy(handle)
        await driver.close()
        assert.deepEqual(await tracesOf(handle), [])
        await fs.rm(root, { recursive: true })
      })

      it(`a guest of QEMU (${architecture}) takes SSH, and speaks first where a protocol does`, boots, async () => {
        using guest = await asRoot()
        assert.match(await guest.run('uname -m'), architecture === 'amd64' ? /x86_64/ : /aarch64/)
        assert.match((await greeting(place.ip, place.ssh, 10_000)) ?? '', /^SSH-2\.0/)
        assert.match((await greeting(vm.ip, vm.screen?.port ?? 0)) ?? '', /^RFB 003/)
        assert.equal(await greeting('127.0.0.2', place.ssh), undefined, 'on its own address only')
        assert.equal(await greeting('127.0.0.2', vm.screen?.port ?? 0), undefined)
      })

      it(`a guest of QEMU (${architecture}) reads its metadata, which stands in no argument and no environment`, async () => {
        using guest = await asRoot()
        const from = 'http://169.254.169.254'
        assert.deepEqual(JSON.parse(await guest.run(`wget -qO- ${from}/metadata/a.b_c-1`)), { value: secret })
        assert.deepEqual(JSON.parse(await guest.run(`wget -qO- ${from}/metadata`)), {
          items: [
            { key: 'greeting', value: 'hello' },
            { key: 'a.b_c-1', value: secret },
          ],
        })
        assert.match(await guest.run(`wget -qO- ${from}/userdata`), /first boot/)
        await assert.rejects(guest.run(`wget -qO- ${from}/metadata/other`), /404/)
        const processes = await processesOf(handle)
        assert.ok(processes.length >= 2)
        for (const { pid } of processes)
          for (const what of ['cmdline', 'environ'])
            assert.ok(!(await fs.readFile(`/proc/${pid}/${what}`, 'utf8')).includes('canary-secret'))
      })

      it(`a guest of QEMU (${architecture}) does not reach the loopback of its host, whatever it does to its routes`, async () => {
        const canary = net.createServer((socket) => socket.end('canary was read\n'))
        await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
        const { port } = canary.address() as net.AddressInfo
        try {
          assert.match((await greeting('127.0.0.1', port)) ?? '', /canary/)
          using guest = await asRoot()
          const look = (address: string) => guest.run(`timeout 3 nc ${address} ${port} < /dev/null 2>&1 || true`)
          for (const address of ['10.0.2.2', '10.0.2.3', '169.254.169.2', '169.254.169.254'])
            assert.doesNotMatch(await look(address), /canary/, address)
          await guest.run(`echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
          ip addr del 127.0.0.1/8 dev lo; ip route del table local local 127.0.0.0/8 dev lo 2>/dev/null
          ip route add 127.0.0.0/8 via 10.0.2.2`)
          assert.doesNotMatch(await look('127.0.0.1'), /canary/, '127.0.0.1 by way of the gateway')
        } finally {
          canary.close()
        }
      })

      it(`a guest of QEMU (${architecture}) stands still while it is suspended`, async () => {
        using guest = await asRoot()
        const uptime = async () => Number((await guest.run('cat /proc/uptime')).split(' ')[0])
        const before = await uptime()
        const startedMs = performance.now()
        await driver.suspension.suspend(handle)
        assert.equal(await greeting(place.ip, place.ssh, 2_000), undefined, 'SSH hangs')
        await driver.suspension.resume(handle)
        const inGuest = (await uptime()) - before
        const outside = (performance.now() - startedMs) / 1_000
        // Some of its time passes before it is frozen, and after.
        assert.ok(outside - inGuest > 1.2, `${outside} s passed, ${inGuest} s in the guest`)
      })

      it(
        `a guest of QEMU (${architecture}) is captured while it runs, and goes on in other VMs as one of their own`,
        boots,
        async () => {
          using guest = await asRoot()
          await goesOnElsewhere({ root, driver, handle, vm, guest })
        },
      )

      // Otherwise vms.test.ts does, through the whole service.
      if (isAllTested)
        it(
          `a guest of QEMU (${architecture}) keeps its disk over a clean stop, and sees that it was grown`,
          boots,
          async () => {
            {
              using guest = await asRoot()
              await guest.run('echo kept > /root/kept')
            }
            // By itself, not by the deadline: that is after any test has to be over.
            await driver.stop(handle, { graceSeconds: 600 })
            assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
            await driver.resizing.grow(handle, 2 * gib)
            await driver.start(handle, vm, signal())
            using guest = await asRoot()
            assert.equal(await guest.run('cat /root/kept'), 'kept')
            assert.equal(Number(await guest.run('cat /sys/block/vda/size')) * 512, 2 * gib)
            assert.match(await fs.readFile(driver.console.log(handle), 'utf8'), /SSH is up/)
          },
        )

      it(
        `a guest of QEMU (${architecture}) goes back to the image, also with old devices, and may power itself off`,
        boots,
        async () => {
          {
            using guest = await asRoot()
            await guest.run('echo kept > /root/kept; sync')
          }
          await driver.stop(handle, { graceSeconds: 0 })
          await driver.reverting.revert(handle, vm)
          const old = { ...vm, netBoost: false, legacyIO: true, systemSerial: 'SVC3-0815' }
          await driver.start(handle, architecture === 'amd64' ? old : vm, signal())
          using guest = await asRoot()
          await assert.rejects(guest.run('cat /root/kept'), /No such file/)
          if (architecture === 'amd64') {
            assert.equal(await guest.run('cat /sys/class/dmi/id/product_serial'), 'SVC3-0815')
            assert.match(await guest.run('mount | grep " / "'), /sda1/)
          }
          const { promise: told, resolve } = Promise.withResolvers<void>()
          driver.follow(handle, resolve)
          await guest.run('(sleep 1; poweroff) > /dev/null 2>&1 &')
          await within(told, 120_000)
          assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
          assert.deepEqual(await qemusOf(handle), [])
        },
      )
    })
})

describe('QEMU VM with UEFI', () => {
  for (const architecture of ['amd64', 'arm64'] satisfies Architecture[])
    it(`a QEMU VM that boots by UEFI has its own variables, ${architecture}`, async () => {
      const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-uefi-'))
      const driver = new QemuDriver()
      const image = async (folder: string, digest: string) => ({
        ...(await blankImage(architecture, folder, digest)),
        boot: { kind: 'firmware', firmware: 'uefi' } as const,
      })
      const vm = await specify({ architecture, image }, root, { memoryMiB: 256 })
      const handle = await driver.create(vm, path.join(root, 'vm'))
      try {
        await driver.start(handle, vm, signal())
        assert.deepEqual(await driver.inspect(handle), { state: 'running' })
        const { mode, size } = await fs.stat(path.join(handle.folder, 'firmware-variables.fd'))
        assert.equal(mode & 0o777, 0o600)
        assert.ok(size > 0)
      } finally {
        await driver.destroy(handle)
        await driver.close()
      }
      assert.deepEqual(await tracesOf(handle), [])
      await fs.rm(root, { recursive: true })
    })
})
