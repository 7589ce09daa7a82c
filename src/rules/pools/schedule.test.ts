// Firings of cron expressions, also across changes of the clock, and schedules of pools.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { lastFiring, nextFiring, parseCron } from './cron.ts'
import { scheduledIdle, scheduleProblems } from './schedule.ts'

function cronOf(text: string) {
  const cron = parseCron(text)
  if ('problem' in cron) assert.fail(cron.problem)
  return cron
}
const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 16)
const next = (text: string, zone: string, from: string): string => iso(nextFiring(cronOf(text), zone, Date.parse(from)))
const last = (text: string, zone: string, from: string): string => iso(lastFiring(cronOf(text), zone, Date.parse(from)))

describe('cron expressions', () => {
  const firings: readonly (readonly [string, string, string, string])[] = [
    ['0 8 * * mon-fri', 'UTC', '2026-11-14T00:00:00Z', '2026-11-16T08:00'],
    ['0 8 * * 1-5', 'Europe/Berlin', '2026-11-16T06:59:59Z', '2026-11-16T07:00'],
    ['0 8 * * 1-5', 'Europe/Berlin', '2026-11-16T07:00:00Z', '2026-11-17T07:00'],
    ['*/15 9-17 * * *', 'America/New_York', '2026-11-16T22:50:00Z', '2026-11-17T14:00'],
    ['5/20 0 1 JAN *', 'UTC', '2026-11-16T00:00:00Z', '2027-01-01T00:05'],
    ['0 0 29 2 *', 'UTC', '2026-11-16T00:00:00Z', '2028-02-29T00:00'],
    // On the 13th, and on every Friday.
    ['0 0 13 * 5', 'UTC', '2026-11-16T00:00:00Z', '2026-11-20T00:00'],
    ['0 0 * * 7', 'UTC', '2026-11-16T00:00:00Z', '2026-11-22T00:00'],
    ['30 12 * * *', 'Asia/Kathmandu', '2026-11-16T00:00:00Z', '2026-11-16T06:45'],
    // Clocks change from 2:00 to 3:00 that night, and back in autumn.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T20:00:00Z', '2026-03-29T01:30'],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T20:00:00Z', '2026-10-25T00:30'],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30:00Z', '2026-10-26T01:30'],
  ]
  for (const [text, zone, from, at] of firings)
    it(`${text} in ${zone} fires after ${from} at ${at}`, () => assert.equal(next(text, zone, from), at))

  it('the last firing may be now', () => {
    assert.equal(last('0 8 * * 1-5', 'UTC', '2026-11-16T08:00:00Z'), '2026-11-16T08:00')
    assert.equal(last('0 8 * * 1-5', 'UTC', '2026-11-16T07:59:00Z'), '2026-11-13T08:00')
    assert.equal(last('0 0 29 2 *', 'Asia/Tokyo', '2026-11-16T00:00:00Z'), '2024-02-28T15:00')
  })

  for (const text of [
    '',
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '*/0 * * * *',
    '5-1 * * * *',
    '1,, * * * *',
  ])
    it(`"${text}" is refused`, () => assert.ok('problem' in parseCron(text)))
  for (const text of ['0 0 30 2 *', '0 0 31 4,6 *'])
    it(`${text} is refused since it never fires`, () => {
      const found = parseCron(text)
      assert.match('problem' in found ? found.problem : '', /never fires/)
    })

  it('no input throws or takes long', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 200 }), fc.stringMatching(/^[0-9*,/ -]{1,128}$/)), (text) => {
        parseCron(text)
      }),
    )
  })

  it('an expression on which cron-parser gives up is tried again an hour later', () => {
    const nowMs = Date.UTC(2025, 0)
    assert.equal(nextFiring(cronOf('* 2 6 4 */7'), 'Australia/Lord_Howe', nowMs), nowMs + 3_600_000)
  })

  it('no firing is between the last one and the next one', () => {
    const field = (least: number, most: number) =>
      fc.oneof(
        fc.constant('*'),
        fc.integer({ min: least, max: most }).map(String),
        fc.integer({ min: 1, max: 20 }).map((step) => `*/${step}`),
      )
    const text = fc
      .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
      .map((all) => all.join(' '))
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Africa/Casablanca')
    const at = fc.integer({ min: Date.UTC(2025, 0), max: Date.UTC(2028, 0) })
    fc.assert(
      fc.property(text, zone, at, (cronText, timeZone, nowMs) => {
        const cron = cronOf(cronText)
        const lastMs = lastFiring(cron, timeZone, nowMs)
        const nextMs = nextFiring(cron, timeZone, nowMs)
        assert.ok(lastMs <= nowMs && nowMs < nextMs)
        assert.equal(nextFiring(cron, timeZone, lastMs), nextMs)
        assert.equal(lastFiring(cron, timeZone, nextMs), nextMs)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the schedule of a pool', () => {
  const zone = 'Europe/Berlin'
  const schedule = [
    { cron: '0 7 * * mon-fri', timeZone: zone, minIdle: 4 },
    { cron: '0 19 * * *', timeZone: zone, minIdle: 0 },
  ]
  it('the entry that fired last sets the number, until another fires', () => {
    const says = (at: string) => scheduledIdle(schedule, Date.parse(at))
    assert.deepEqual(says('2026-11-16T06:00:00Z'), { minIdle: 4, untilMs: Date.parse('2026-11-16T18:00:00Z') })
    assert.deepEqual(says('2026-11-16T18:00:00Z'), { minIdle: 0, untilMs: Date.parse('2026-11-17T06:00:00Z') })
    assert.deepEqual(says('2026-11-14T12:00:00Z'), { minIdle: 0, untilMs: Date.parse('2026-11-14T18:00:00Z') })
    assert.equal(scheduledIdle([], 0), undefined)
  })
  it('of entries that fire together the last one counts', () => {
    const both = [1, 2].map((minIdle) => ({ cron: '0 7 * * *', timeZone: zone, minIdle }))
    assert.equal(scheduledIdle(both, Date.now())?.minIdle, 2)
  })
  it('invalid entries are named by their index', () => {
    const bad = [...schedule, { cron: '0 0 30 2 *', timeZone: 'Mars/Olympus', minIdle: 9 }]
    assert.deepEqual(
      scheduleProblems(bad, 4).map(({ field }) => field),
      ['schedule.2.cron', 'schedule.2.timeZone', 'schedule.2.minIdle'],
    )
    assert.deepEqual(scheduleProblems(schedule, 4), [])
  })
})
