// The data of the charts, with a clock that the test sets.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { Charts } from '../../api/service/charts.ts'
import { openMemory } from '../../store/memory.ts'
import { openCollections } from '../../store/records/collections.ts'
import { StoreError } from '../../store/store.ts'
import { History, minutesKept } from './history.ts'

const nothing = { list: () => [], each: () => [], view: { subscribe: () => () => undefined } } as never
const minute = 60_000
const noon = Date.parse('2026-11-15T12:00:00Z')
const dayMinutes = 1_440

async function start(store = openMemory()) {
  const { history: records } = await openCollections(store)
  const clock = { nowMs: noon, now: () => new Date(clock.nowMs) }
  const begin = () => new History({ collections: { vms: nothing, pushJobs: nothing, history: records }, clock })
  const history = begin()
  return { clock, history, records, begin, [Symbol.dispose]: () => history.stop() }
}
const valuesOf = ({ series }: Charts, name: string) => series.find((each) => each.name === name)?.values ?? []

describe('the history', () => {
  it('the history has medians and percentiles of each minute, and null for empty minutes', async () => {
    using made = await start()
    const { clock, history } = made
    for (let count = 0; count < 98; count++) history.request('listVms', 0.004, false)
    for (let count = 0; count < 2; count++) history.request('listVms', 2, false)
    clock.nowMs += 2 * minute
    history.request('getVm', 0.1, false)
    const charts = history.charts()
    assert.equal(charts.stepSeconds, 60)
    assert.equal(charts.series[0]?.start, noon / 1_000)
    const [first, second, third] = valuesOf(charts, 'apiSeconds')
    assert.ok(Math.abs((first ?? 0) - 0.004) < 0.0006, String(first))
    assert.equal(second, null)
    assert.ok(Math.abs((third ?? 0) - 0.1) < 0.014, String(third))
    const [slow] = valuesOf(charts, 'apiSecondsP99')
    assert.ok(Math.abs((slow ?? 0) - 2) < 0.26, String(slow))
  })

  it('the history ignores the latencies of operations that wait', async () => {
    using made = await start()
    made.history.request('deployVm', 30, false)
    made.history.request('listVms', 3_600, true)
    made.history.request(undefined, 1, false)
    assert.deepEqual(valuesOf(made.history.charts(), 'apiSeconds'), [null])
  })

  it('the history has a day by the minute and a week by the quarter of an hour, and does not grow further', async () => {
    using made = await start()
    const { clock, history, records } = made
    // One minute of each hour is enough for the first days.
    for (let hour = 0; hour < 24 * 7; hour++) {
      history.moved(900)
      await history.flush()
      clock.nowMs += 60 * minute
    }
    for (let at = 0; at < dayMinutes + 30; at++) {
      history.moved(60 * (at + 1))
      history.sample()
      if (at % 5 === 0) await history.flush()
      clock.nowMs += minute
    }
    await history.flush()
    const day = history.charts()
    const moved = valuesOf(day, 'bytesPerSecond')
    assert.deepEqual([day.stepSeconds, moved.length], [60, dayMinutes])
    assert.deepEqual(moved.slice(-3), [dayMinutes + 29, dayMinutes + 30, 0])
    assert.equal(moved[0], 32)
    const week = history.charts(minutesKept)
    assert.equal(week.stepSeconds, 900)
    const weekMoved = valuesOf(week, 'bytesPerSecond')
    assert.ok(weekMoved.length <= minutesKept / 15 + 1 && weekMoved.length > minutesKept / 15 - 4)
    assert.equal(weekMoved[0], 1)
    const kept = records.list().map(({ value }) => value)
    assert.ok(kept.length <= minutesKept / 15 + 2, String(kept.length))
    assert.ok(kept.flatMap(({ points }) => points).length <= kept.length + dayMinutes + 30)
    assert.equal(valuesOf(history.charts(10), 'runningVms').length, 10)
  })

  it('the history survives a restart within a minute, and counts nothing twice', async () => {
    using made = await start()
    const { clock, history, begin } = made
    history.moved(600)
    history.request('getVm', 0.1, false)
    await Promise.all([history.flush(), history.flush()])
    history.stop()
    const again = begin()
    again.moved(600)
    await again.flush()
    again.stop()
    clock.nowMs += 3 * minute
    const third = begin()
    const charts = third.charts()
    third.stop()
    assert.deepEqual(valuesOf(charts, 'bytesPerSecond'), [20, null, null, 0])
    assert.deepEqual(valuesOf(charts, 'runningVms'), [0, null, null, 0])
    assert.notEqual(valuesOf(charts, 'apiSeconds')[0], null)
  })

  it('the history adds the counts of several servers, and is the same on each', async () => {
    const store = openMemory()
    using one = await start(store)
    using two = await start(store)
    one.history.moved(600)
    two.history.moved(1_200)
    await Promise.all([one.history.flush(), two.history.flush()])
    await Promise.all([one.history.flush(), two.history.flush()])
    for (const { history } of [one, two]) assert.deepEqual(valuesOf(history.charts(), 'bytesPerSecond'), [30])
  })

  it('the history writes failed points with the next batch', async () => {
    using made = await start()
    const { history, records } = made
    const { change } = records
    records.change = async () => {
      throw new StoreError('Unavailable', 'the disk is full')
    }
    history.moved(600)
    await assert.rejects(history.flush(), /the disk is full/)
    history.moved(600)
    records.change = change
    await history.flush()
    assert.equal(records.list()[0]?.value.points[0]?.bytes, 1_200)
  })

  it('the history survives a clock that is set forwards by days or back', async () => {
    using made = await start()
    const { clock, history } = made
    history.moved(600)
    clock.nowMs += 30 * 24 * 60 * minute
    assert.deepEqual(valuesOf(history.charts(), 'bytesPerSecond'), [0])
    clock.nowMs -= 24 * 60 * minute
    history.moved(60)
    assert.equal(valuesOf(history.charts(), 'bytesPerSecond').at(-1), 1)
  })
})

describe('the charts of a service', () => {
  it('the charts of a service count VMs, deployments and bytes, and need only a token', async () => {
    await using service: TestService = await startService()
    await using _ = startScheduler(service)
    await addImage(service, 'intel', 'amd64')
    await startNode(service)
    const url = await service.listen()
    const vms = '/api/v1/namespaces/svc-default/vms'
    await service.call('POST', vms, { body: { image: 'intel', name: 'a', cpu: 1 } })
    await service.call('POST', vms, { body: { image: 'intel', name: 'b', cpu: 1 } })
    const headers = { authorization: `Bearer ${service.devToken}`, connection: 'close' }
    await (await fetch(`${url}${vms}`, { headers })).text()
    const charts = await eventually(async () => {
      const { body } = await service.call('GET', '/api/v1/charts?minutes=5', { token: service.devToken })
      assert.ok((valuesOf(body, 'bytesPerSecond').at(-1) ?? 0) > 0)
      return body
    })
    assert.equal(valuesOf(charts, 'runningVms').at(-1), 2)
    for (const name of ['deploySeconds', 'deploySecondsP95', 'queueSeconds', 'queueSecondsP95'])
      assert.notEqual(valuesOf(charts, name).at(-1), null, name)
    assert.equal((await service.call('GET', '/api/v1/charts', { token: null })).status, 401)
  })
})
