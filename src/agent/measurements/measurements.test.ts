// Sampling VMs and the host with a clock that the test sets.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import type { VmUsage } from '../../drivers/driver.ts'
import { silentLog } from '../../platform/log.ts'
import { Measurements } from './measurements.ts'

async function arrange() {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-measured-'))
  const clock = { nowMs: Date.parse('2026-11-17T12:00:00Z'), now: () => new Date(clock.nowMs) }
  const vm = { handle: { version: 1, driver: 'test', uid: 'u1', folder: '/x' }, cores: 2 } as const
  const state = { vms: [vm] as (typeof vm)[], used: undefined as VmUsage | undefined, hits: 0, misses: 0 }
  const begin = (usage: boolean = true) =>
    Measurements.start({
      folder,
      vms: () => state.vms,
      usage: usage ? async () => state.used : undefined,
      images: () => ({ hits: state.hits, misses: state.misses }),
      clock,
      log: silentLog,
    })
  return { folder, clock, state, begin, [Symbol.asyncDispose]: () => fs.rm(folder, { recursive: true }) }
}

it('a VM is measured in percent of its cores and in rates, also over a restart of its agent, until it is deleted', async () => {
  await using rig = await arrange()
  const { clock, state } = rig
  const first = await rig.begin()
  const latest = (from: Measurements, name: string) =>
    from
      .read('u1', 60)
      .series.find((each) => each.name === name)
      ?.values.at(-1)
  clock.nowMs += 10_000
  state.used = { cpuSeconds: 5, memoryBytes: 100, diskReadBytes: 0, diskWrittenBytes: 50, networkInBytes: 7 }
  await first.sample()
  assert.deepEqual([latest(first, 'memory'), latest(first, 'cpu')], [100, null], 'a rate needs two samples')
  clock.nowMs += 10_000
  state.used = { cpuSeconds: 15, memoryBytes: 200, diskReadBytes: 1_000, diskWrittenBytes: 50, networkInBytes: 3 }
  await first.sample()
  assert.deepEqual(
    ['cpu', 'memory', 'diskRead', 'diskWrite', 'networkIn', 'networkOut'].map((name) => latest(first, name)),
    [50, 200, 100, 0, null, null],
    'a counter that was reset has no rate',
  )
  await first.stop()
  const second = await rig.begin()
  clock.nowMs += 60_000
  await second.sample()
  const memory = second.read('u1', 1_440).series.find(({ name }) => name === 'memory')
  assert.deepEqual(memory?.values, [150, 200])
  state.vms = []
  await second.sample()
  assert.deepEqual(second.read('u1', 60).series, [])
  await second.stop()
  assert.deepEqual(await fs.readdir(path.join(rig.folder, 'measurements')), ['node'])
})

it('a host is measured, including hits of its image cache, and nothing is if the driver does not measure', async () => {
  await using rig = await arrange()
  const { clock, state } = rig
  const measured = await rig.begin()
  await measured.sample()
  clock.nowMs += 10_000
  state.hits = 3
  state.misses = 1
  await measured.sample()
  const { series } = measured.read(undefined, 60)
  assert.deepEqual(
    series.map(({ name, unit }) => [name, unit]),
    [['cpu', '%'], ['memory', 'B'], ['disk', 'B'], ['cacheHits', '%']],
  ) // biome-ignore format: a table
  assert.equal(series.find(({ name }) => name === 'cacheHits')?.values.at(-1), 75)
  for (const { name, values } of series) assert.ok((values.at(-1) ?? -1) >= 0, name)
  await measured.stop()
  const none = await rig.begin(false)
  assert.deepEqual(none.read(undefined, 60).series, [])
  await none.stop()
})
