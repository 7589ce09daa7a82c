// What every driver that captures must do: part of the contract in driver.ts.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { it } from 'node:test'
import type { Driver, Handle, Observed, VmSpec } from '../../src/drivers/driver.ts'

interface Arranged {
  readonly root: string
  readonly driver: Driver
  readonly vm: VmSpec
  readonly handle: Handle
  is(expected: Observed['state']): Promise<void>
}

const mib = 2 ** 20
const signal = () => AbortSignal.timeout(120_000)

export function capturesContract(
  name: string,
  test: {
    open(): Driver
    image(folder: string, digest: string): Promise<VmSpec['image']>
    readonly imageMib?: number
  },
  arrange: () => Promise<Arranged>,
): void {
  const mibs = (count: number): number => (count + (test.imageMib ?? 64) - 64) * mib
  it(`${name}: the driver captures a VM in every state, once for each id, until it is released`, async () => {
    const { root, driver, vm, handle, is } = await arrange()
    const { capturing, reverting, resizing } = driver
    assert.ok(capturing && reverting && resizing)
    const capture = (id: string, withMemory = false) => capturing.capture(handle, vm, { id, withMemory }, signal())
    assert.deepEqual(await capturing.list(handle), [])
    await capturing.release(handle, 'unknown')
    await driver.start(handle, vm, signal())
    const first = await capture('first')
    const { machine, ...rest } = first
    for (const file of machine ? [machine.config, machine.nvram ?? ''] : []) await fs.access(file)
    await is('running')
    assert.deepEqual(
      { ...rest, layers: [] },
      { id: 'first', base: 'sha256:first', layers: [], virtualSizeBytes: mibs(64) },
    )
    assert.deepEqual(await capture('first'), first, 'the same again')
    const second = await capture('second', true)
    assert.equal(second.memory === undefined, second.note !== undefined)
    assert.match(second.note ?? 'The memory of the VM was not saved: ', /^The memory of the VM was not saved: /)
    assert.deepEqual(second.layers.slice(0, first.layers.length), first.layers, 'on top of what was')
    await driver.suspension?.suspend(handle)
    await capture('suspended')
    await is('suspended')
    await driver.close()
    const later = test.open()
    assert.deepEqual((await later.capturing?.list(handle))?.map(({ id }) => id).sort(), [
      'first',
      'second',
      'suspended',
    ])
    await later.close()
    await driver.start(handle, vm, signal())
    await driver.stop(handle, { graceSeconds: 0 })
    await driver.start(handle, vm, signal())
    await driver.stop(handle, { graceSeconds: 0 })
    await resizing.grow(handle, mibs(96))
    const grown = await capture('stopped')
    assert.equal(grown.virtualSizeBytes, mibs(96))
    await driver.start(handle, vm, signal())
    await driver.stop(handle, { graceSeconds: 0 })
    await reverting.revert(handle, { ...vm, image: await test.image(root, 'sha256:newer') })
    assert.deepEqual(await capture('first'), first, 'a revert takes nothing from it')
    for (const { file } of [...second.layers, ...grown.layers]) await fs.access(file)
    for (const id of ['first', 'second', 'suspended', 'stopped', 'first']) await capturing.release(handle, id)
    assert.deepEqual(await capturing.list(handle), [])
    for (const { file } of grown.layers) await assert.rejects(fs.access(file))
    if (second.memory) await assert.rejects(fs.access(second.memory.file))
  })
}
