// Rings of measured values: their means, their length, and saving them over a restart.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Rings } from './rings.ts'

const noon = Date.parse('2026-11-17T12:00:00Z') / 1_000
const rings = () => new Rings(['cpu', 'memory'])

describe('rings of measurements', () => {
  it('an hour has steps of ten seconds, longer times have the mean of each minute, and gaps are null', () => {
    const made = rings()
    made.add(noon, { cpu: 10, memory: 5 })
    made.add(noon + 10, { cpu: 20 })
    made.add(noon + 70, { cpu: 40 })
    const hour = made.read(noon + 80, 60)
    assert.deepEqual([hour.stepSeconds, hour.start], [10, noon])
    assert.deepEqual(hour.values.cpu, [10, 20, null, null, null, null, null, 40, null])
    const day = made.read(noon + 80, 1_440)
    assert.deepEqual([day.stepSeconds, day.values.cpu, day.values.memory], [60, [15, 40], [5, null]])
  })

  it('rings keep an hour and a day of values', () => {
    const made = rings()
    for (let at = 0; at < 2 * 86_400; at += 10) made.add(noon + at, { cpu: at })
    const now = noon + 2 * 86_400
    assert.equal(made.read(now - 1, 60).values.cpu.length, 360)
    const day = made.read(now - 1, 1_440).values.cpu
    assert.deepEqual([day.length, day.every((value) => value !== null)], [1_440, true])
    assert.deepEqual(made.read(now + 86_400 * 3, 60).values.cpu, Array(360).fill(null), 'old values are not returned')
  })

  it('a saved day is restored, and continues', () => {
    const made = rings()
    for (let at = 0; at < 3_600; at += 10) made.add(noon + at, { cpu: 7, memory: at })
    const again = rings()
    again.load(JSON.parse(JSON.stringify(made.save(noon + 3_599))))
    again.add(noon + 3_600, { cpu: 9 })
    const { values } = again.read(noon + 3_600, 1_440)
    assert.deepEqual([values.cpu.length, values.cpu.at(-2), values.cpu.at(-1), values.memory[0]], [61, 7, 9, 25])
  })

  it('a clock that is set back does not delete values', () => {
    const made = rings()
    made.add(noon + 60, { cpu: 1 })
    made.add(noon, { cpu: 99 })
    assert.deepEqual(made.read(noon + 60, 60).values.cpu, [1])
  })
})
