// Parsing and formatting of durations.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatDuration, parseDuration, timeLeft } from './durations.ts'

describe('parseDuration', () => {
  const good: readonly (readonly [string, number])[] = [
    ['8760h0m0s', 31_536_000],
    ['30d', 2_592_000],
    ['1h30m', 5_400],
    ['1.5h', 5_400],
    ['90s', 90],
    ['0s', 0],
  ]
  for (const [text, seconds] of good) it(`${text} is ${seconds} s`, () => assert.equal(parseDuration(text), seconds))
  for (const text of ['', '10', 'h', '-1h', '1 h', '1h-30m', '1y', '1e3s', 'forever']) {
    it(`parseDuration: ${JSON.stringify(text)} is invalid`, () => assert.equal(parseDuration(text), undefined))
  }
})

it('formatDuration says it exactly, in the largest unit, as parseDuration reads it', () => {
  const all = [1, 90, 5_400, 7_200, 604_800]
  assert.deepEqual(all.map(formatDuration), ['1s', '90s', '90m', '2h', '7d'])
  assert.deepEqual(
    all.map((seconds) => parseDuration(formatDuration(seconds))),
    all,
  )
})

it('timeLeft counts in the unit that says most', () => {
  assert.deepEqual([40, 170, 5_400, 172_000, 31_536_000].map(timeLeft), [
    '40 s',
    '3 min',
    '1.5 h',
    '47.8 h',
    '365 days',
  ])
})
