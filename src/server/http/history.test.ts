// What the charts show, over a day that a test turns.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import type { Charts } from '../../api/service/charts.ts'
import { createHistory, minutesKept } from './history.ts'

const nothing = { list: () => [], view: { subscribe: () => () => undefined } } as never
const minute = 60_000
const noon = Date.parse('2026-11-15T12:00:00Z')

function start() {
  const clock = { nowMs: noon, now: () => new Date(clock.nowMs) }
  const history = createHistory({ collections: { vms: nothing, pushJobs: nothing }, clock })
  return { clock, history, [Symbol.dispose]: () => history.stop() }
}
const valuesOf = ({ series }: Charts, name: string) => series.find((each) => each.name === name)?.values ?? []

describe('the history', () => {
  it('the history has medians and percentiles of each minute, and nothing where nothing was', () => {
    using made = start()
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

  it('the history leaves out what waits by nature', () => {
    using made = start()
    made.history.request('deployVm', 30, false)
    made.history.request('listVms', 3_600, true)
    made.history.request(undefined, 1, false)
    assert.deepEqual(valuesOf(made.history.charts(), 'apiSeconds'), [null])
  })

  it('the history goes round after a day, and takes no more room for more', () => {
    using made = start()
    const { clock, history } = made
    for (let at = 0; at < minutesKept + 100; at++) {
      history.moved(60 * (at + 1))
      clock.nowMs += minute
    }
    const charts = history.charts()
    const moved = valuesOf(charts, 'bytesPerSecond')
    assert.equal(moved.length, minutesKept)
    assert.deepEqual(moved.slice(-3), [minutesKept + 99, minutesKept + 100, 0])
    assert.equal(moved[0], 102)
    assert.equal(charts.series[0]?.start, (clock.nowMs - (minutesKept - 1) * minute) / 1_000)
    assert.ok(charts.series.every(({ values }) => values.length === minutesKept))
    assert.equal(valuesOf(history.charts(10), 'runningVms').length, 10)
  })

  it('the history survives a clock that is set forwards by days, and one that is set back', () => {
    using made = start()
    const { clock, history } = made
    history.moved(600)
    clock.nowMs += 30 * 24 * 60 * minute
    assert.ok(valuesOf(history.charts(), 'bytesPerSecond').every((value) => value === 0))
    clock.nowMs -= 24 * 60 * minute
    history.moved(60)
    assert.equal(valuesOf(history.charts(), 'bytesPerSecond').at(-1), 1)
  })
})

describe('the charts of a service', () => {
  it('the charts of a service count VMs, deployments and bytes, and are for everybody with a token', async () => {
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
    assert.notEqual(valuesOf(charts, 'deploySeconds').at(-1), null)
    assert.equal((await service.call('GET', '/api/v1/charts', { token: null })).status, 401)
  })
})
