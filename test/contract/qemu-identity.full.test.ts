// Guests that resume from memory are the new VM by the time that their start returns: what the first look sees, how
// long it took, a kill -9 in between, and guests that cannot be told.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { BaseImage, Handle, VmSpec } from '../../src/drivers/driver.ts'
import { QemuDriver } from '../../src/drivers/qemu/driver.ts'
import { macAddress } from '../../src/drivers/qemu/network/identity.ts'
import { type Guest, openGuest, testedArchitectures } from '../support/guests/guest.ts'
import { tinyBase } from '../support/guests/tiny-base.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { freePort } from '../support/tools/free-port.ts'
import { tracesOf } from './driver-blank-vm.ts'
import { type EmulatedClock, emulatedClock } from './driver-resumes.ts'
import { savedImage } from './driver-saved-image.ts'
import { specify } from './driver-vm.ts'

const crasher = path.join(import.meta.dirname, 'driver-crasher.ts')
const boots = { timeout: 600_000 }
const timeoutMs = 300_000
const signal = () => AbortSignal.timeout(120_000)
const rounds = isAllTested ? 10 : 4

for (const architecture of testedArchitectures)
  describe(`QEMU guest from memory (${architecture})`, () => {
    const driver = new QemuDriver()
    const handles: Handle[] = []
    let root: string
    let source: { handle: Handle; vm: VmSpec }
    let guest: Guest
    let image: BaseImage
    let clock: EmulatedClock
    let captures = 0

    const sshOf = ({ ip, forwards }: VmSpec) => ({ ip, ssh: forwards[0]?.hostPort ?? 0 })
    const into = (vm: VmSpec) => openGuest(sshOf(vm), { user: 'root' }, timeoutMs)
    const make = async (name: string, base: BaseImage) => {
      const forwards = [{ protocol: 'tcp' as const, hostPort: await freePort(), guestPort: 22 }]
      const vm = await specify({ architecture, image: async () => base }, root, {
        name,
        memoryMiB: 256,
        forwards,
        metadata: { greeting: `of ${name}` },
      })
      const handle = await driver.create(vm, path.join(root, name))
      handles.push(handle)
      return { handle, vm }
    }
    const deploy = async (name: string, base = image) => {
      const made = await make(name, base)
      return { ...made, ...(await driver.start(made.handle, made.vm, signal())) }
    }
    const save = async (): Promise<BaseImage> => {
      const id = `saved-${++captures}`
      const capture = await driver.capturing.capture(source.handle, source.vm, { id, withMemory: true }, signal())
      return savedImage(capture, source.vm.image, root)
    }
    /** One look, at once: nothing is waited for. */
    const isItself = async (vm: VmSpec): Promise<void> => {
      using inside = await into(vm)
      const askedMs = Date.now()
      const seen = await inside.run(
        'date +%s; hostname; cat /etc/hostname /sys/class/net/eth0/address /sys/class/net/eth1/address; ' +
          'wget -qO- http://169.254.169.254/metadata/greeting',
      )
      const [time = '', ...rest] = seen.split('\n')
      assert.deepEqual(rest, [
        vm.name,
        vm.name,
        macAddress(vm.uid, 0),
        macAddress(vm.uid, 1),
        JSON.stringify({ value: `of ${vm.name}` }),
      ])
      const behind = askedMs / 1_000 - Number(time)
      const ahead = Number(time) - Date.now() / 1_000
      const allowed = 2 + (await clock.error())
      assert.ok(behind < allowed && ahead < allowed, `its clock is ${behind} s behind`)
    }

    before(async () => {
      root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-identity-'))
      source = await make('source', await tinyBase(architecture))
      await driver.start(source.handle, source.vm, signal())
      guest = await into(source.vm)
      await guest.run('until ls -l /proc/[0-9]*/fd 2> /dev/null | grep -q /dev/vport; do sleep 0.2; done', timeoutMs)
      // A clock that is years behind: a resume that does not set it is noticed.
      await guest.run('date -s @1600000000 > /dev/null; sync')
      image = await save()
      clock = await emulatedClock(guest)
    }, boots)
    after(async () => {
      guest[Symbol.dispose]()
      for (const handle of handles) {
        await driver.destroy(handle)
        assert.deepEqual(await tracesOf(handle), [])
      }
      await driver.close()
      await fs.rm(root, { recursive: true })
    })

    it(
      `a QEMU guest from memory (${architecture}) has its name, clock, network and metadata when the start returns`,
      boots,
      async (t: TestContext) => {
        const times: number[] = []
        for (let round = 0; round < rounds; round++) {
          const { handle, vm, note, toldMs = Number.NaN } = await deploy(`vm-${round}`)
          assert.equal(note, undefined)
          times.push(toldMs)
          await isItself(vm)
          await driver.stop(handle, { graceSeconds: 0 })
        }
        times.sort((a, b) => a - b)
        const median = ((times[rounds / 2 - 1] ?? 0) + (times[rounds / 2] ?? 0)) / 2
        t.diagnostic(`${architecture}: told in ${median} ms in the median of ${rounds}: ${times.join(', ')}`)
        assert.ok(median < 5_000, String(median))
      },
    )

    // What follows has nothing to do with the architecture.
    if (architecture === 'arm64') return

    for (const at of ['qemu-loaded', 'qemu-resumed'])
      it(`a QEMU guest from memory is told who it is after a kill -9 of the agent at ${at}`, boots, async () => {
        const made = await make(at, image)
        await dieAt(at, made)
        const next = new QemuDriver()
        assert.deepEqual(await next.inspect(made.handle), { state: 'running' })
        await isItself(made.vm)
        assert.deepEqual(await next.start(made.handle, made.vm, signal()), {})
        await next.close()
        await driver.stop(made.handle, { graceSeconds: 0 })
      })

    it(
      'a QEMU guest from memory that does not answer runs after a few seconds, with what it may lack',
      boots,
      async () => {
        const agents = await guest.run("ps | grep '[/]etc/rc.agent' | sed 's/^ *//' | cut -d ' ' -f 1")
        assert.match(agents, /^\d+/)
        await guest.run(`kill -STOP ${agents.replaceAll('\n', ' ')}`)
        const { handle, note, toldMs = 0 } = await deploy('stuck', await save())
        assert.match(
          note ?? '',
          /name, clock and network addresses of the saved VM: it did not confirm new ones within 5 s/,
        )
        assert.ok(toldMs >= 4_900, `${toldMs} ms`)
        assert.deepEqual(await driver.inspect(handle), { state: 'running', note })
        await driver.stop(handle, { graceSeconds: 0 })

        await guest.run(`kill -KILL ${agents.replaceAll('\n', ' ')}`)
        const other = await deploy('deaf', await save())
        assert.match(other.note ?? '', /no agent in it was listening when it was saved/)
        assert.ok((other.toldMs ?? Infinity) < 4_000, `not waited for: ${other.toldMs} ms`)
        await driver.stop(other.handle, { graceSeconds: 0 })
      },
    )

    async function dieAt(at: string, task: { handle: Handle; vm: VmSpec }): Promise<void> {
      const file = path.join(root, 'task.json')
      await fs.writeFile(file, JSON.stringify(task))
      const env = { PATH: process.env.PATH, SVC3_TEST: '1', SVC3_FAILPOINT: at }
      const child = spawn(process.execPath, [crasher, 'start', file], { env, stdio: ['ignore', 'inherit', 'inherit'] })
      const killedBy = await new Promise((resolve) => child.on('exit', (_, by) => resolve(by)))
      assert.equal(killedBy, 'SIGKILL', `it died at ${at}`)
    }
  })
