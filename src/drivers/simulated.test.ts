// The knobs of the simulated driver, and the cost of thousands of its VMs.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { machineDefaults } from '../api/vms/vm-shape.ts'
import { PortTaken, type VmSpec } from './driver.ts'
import { SimulatedDriver } from './simulated.ts'

const spec = (index: number): VmSpec => ({
  uid: `uid-${index}`,
  name: `vm-${index}`,
  architecture: 'arm64',
  cpu: 1,
  memoryMiB: 1_024,
  image: {
    name: 'i',
    digest: 'sha256:1',
    disk: '/nowhere',
    format: 'raw',
    virtualSizeBytes: 2 ** 30,
    boot: { kind: 'firmware' },
  },
  ip: '127.9.9.9',
  forwards: [{ protocol: 'tcp', hostPort: 10_000 + index, guestPort: 22 }],
  metadata: { key: 'value' },
  ...machineDefaults,
})
const signal = new AbortController().signal

let root: string
before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-simulated-'))
})
after(() => fs.rm(root, { recursive: true }))

describe('simulated driver', () => {
  it('the simulated driver takes the configured time, and can be aborted', async () => {
    const driver = new SimulatedDriver({ bootMs: 80, stopMs: 40 })
    const handle = await driver.create(spec(1), path.join(root, 'slow'))
    await assert.rejects(driver.start(handle, spec(1), AbortSignal.timeout(10)), { name: 'AbortError' })
    assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
    const startedMs = performance.now()
    await driver.start(handle, spec(1), signal)
    await driver.stop(handle, { graceSeconds: 0 })
    assert.ok(performance.now() - startedMs >= 115)
    await driver.destroy(handle)
    const slow = new SimulatedDriver({ stopMs: 600_000 })
    await slow.create(spec(1), handle.folder)
    await slow.start(handle, spec(1), signal)
    await slow.stop(handle, { graceSeconds: 600, signal: AbortSignal.timeout(20) })
    assert.deepEqual(await slow.inspect(handle), { state: 'stopped' })
    await slow.destroy(handle)
  })

  it('the simulated driver fails at configured steps, once or always', async () => {
    const driver = new SimulatedDriver({ failAt: { start: 'once', stop: 1 } })
    const handle = await driver.create(spec(2), path.join(root, 'failing'))
    await assert.rejects(driver.start(handle, spec(2), signal), /simulated failure at start/)
    assert.deepEqual(await driver.inspect(handle), { state: 'stopped' })
    await driver.start(handle, spec(2), signal)
    for (let times = 0; times < 2; times++)
      await assert.rejects(driver.stop(handle, { graceSeconds: 0 }), /simulated failure at stop/)
    assert.deepEqual(await driver.inspect(handle), { state: 'running' })
    await driver.destroy(handle)
  })

  it('the simulated driver reports configured limits', async () => {
    const driver = new SimulatedDriver({ maxVms: 2, architectures: ['arm64'] })
    const expected = { ok: true, version: 'simulated', architectures: ['arm64'], maxVms: 2 }
    assert.deepEqual(await driver.probe(), expected)
  })

  it('the simulated driver runs 2,000 VMs on 200 drivers without timers', async () => {
    const timersBefore = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const drivers = Array.from({ length: 200 }, () => new SimulatedDriver())
    const folderOf = (index: number): string => path.join(root, `node-${index % drivers.length}`, String(index))
    const all = await Promise.all(
      Array.from({ length: 2_000 }, async (_, index) => {
        const driver = drivers[index % drivers.length] ?? new SimulatedDriver()
        const handle = await driver.create(spec(index), folderOf(index))
        await driver.start(handle, spec(index), signal)
        return { driver, handle }
      }),
    )
    const [first] = drivers
    assert.ok(first)
    const another = await first.create(spec(0), folderOf(2_000))
    await assert.rejects(first.start(another, spec(0), signal), PortTaken)
    const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    assert.ok(timers <= timersBefore, `${timers} timers`)
    for (const { driver, handle } of all) {
      assert.deepEqual(await driver.inspect(handle), { state: 'running' })
      await driver.destroy(handle)
    }
    await first.start(another, spec(0), signal)
    await first.destroy(another)
    for (const driver of drivers) await driver.close()
  })

  it('the simulated driver creates the folder of a VM when its console is read, and removes it', async (test) => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-simulated-'))
    test.after(() => fs.rm(folder, { recursive: true }))
    const driver = new SimulatedDriver()
    const handle = await driver.create(spec(3), path.join(folder, 'a'))
    await driver.start(handle, spec(3), signal)
    const another = { ...handle, folder: path.join(folder, 'none') }
    driver.console.log(another)
    assert.deepEqual(await fs.readdir(folder), ['simulated.jsonl'])
    for (let times = 0; times < 2; times++)
      assert.equal(
        await fs.readFile(driver.console.log(handle), 'utf8'),
        'simulated: vm-3 is up; nothing runs in here\n',
      )
    await driver.destroy(handle)
    assert.deepEqual(await fs.readdir(folder), ['simulated.jsonl'])
    await driver.close()
  })

  it('the simulated driver finds VMs of an earlier agent, with the ports that they hold', async (test) => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-simulated-'))
    test.after(() => fs.rm(folder, { recursive: true }))
    const driver = new SimulatedDriver()
    const handle = await driver.create(spec(4), path.join(folder, 'a'))
    await driver.start(handle, spec(4), signal)
    await driver.close()
    const log = path.join(folder, 'simulated.jsonl')
    // Another port, because the first one is still in use in this process.
    await fs.writeFile(log, (await fs.readFile(log, 'utf8')).replaceAll('10004', '10005'))
    const later = new SimulatedDriver()
    assert.deepEqual(await later.inspect(handle), { state: 'running' })
    const other = await later.create(spec(5), path.join(folder, 'b'))
    await assert.rejects(later.start(other, spec(5), signal), PortTaken)
    await later.destroy(handle)
    await later.start(other, spec(5), signal)
    await later.destroy(other)
    assert.deepEqual(await fs.readdir(folder), ['simulated.jsonl'])
    await later.close()
  })
})
