// Progress on a terminal, in a log, and with --quiet.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import type { Context } from '../command.ts'
import { startBoard, startMeter, startProgress, stepOf } from './progress.ts'
import { startRate, transferText } from './rate.ts'

const gibi = 2 ** 30
let written = ''
let nowMs = 0
const contextOf = (isTerminal: boolean, isTalking = true): Context => {
  const stderr = {
    isTerminal,
    columns: 70,
    write: (text: string): void => {
      written += text
    },
    flush: async () => undefined,
  }
  return { host: { stderr, calledAs: 'svc3' }, isTalking } as unknown as Context
}

const esc = '\x1b'
const sequences = new RegExp(`${esc}\\[\\d*[AK]|\\r|\\n|[^${esc}\\r\\n]+`, 'g')

/** The lines of a terminal after this output. */
function screen(text: string): string[] {
  const lines = ['']
  let row = 0
  let column = 0
  for (const [part] of text.matchAll(sequences)) {
    const current = lines[row] ?? ''
    if (part === '\r') column = 0
    else if (part === '\n') lines[++row] ??= ''
    else if (part.startsWith('\x1b') && part.endsWith('A')) row -= Number(/\d+/.exec(part)?.[0] ?? 1)
    else if (part.startsWith('\x1b')) lines[row] = ''
    else {
      lines[row] = current.slice(0, column) + part + current.slice(column + part.length)
      column += part.length
    }
    if (part === '\n') column = 0
    assert.ok(row >= 0, 'the cursor left the lines that are ours')
  }
  return lines.filter((line) => line !== '')
}

beforeEach(() => {
  written = ''
  nowMs = 1_000
  mock.method(performance, 'now', () => nowMs)
  mock.timers.enable({ apis: ['setInterval'] })
})
afterEach(() => {
  mock.timers.reset()
  mock.restoreAll()
})

describe('progress on a terminal', () => {
  it('progress on a terminal is one line that changes, and is removed at the end', () => {
    const progress = startProgress(contextOf(true), 'vm demo')
    progress.show({ text: 'copies', percent: 50 })
    assert.deepEqual(screen(written), ['vm demo: copies [##########----------] 50 %'])
    nowMs += 5_000
    mock.timers.tick(1_000)
    assert.deepEqual(screen(written), ['vm demo: copies [##########----------] 50 % (5 s)'])
    progress.end()
    assert.deepEqual(screen(written), [])
    const before = written
    mock.timers.tick(10_000)
    assert.equal(written, before)
  })

  it('progress on a terminal shows bytes with rate and time left, at a readable pace', () => {
    const meter = startMeter(contextOf(true), 'image sonoma', 4 * gibi)
    nowMs += 1_000
    meter.at(gibi)
    assert.deepEqual(screen(written), ['image sonoma: 1 GiB of 4 GiB, 1 GiB/s, 3 s left 25 %'])
    const before = written
    nowMs += 100
    meter.at(gibi + 1)
    assert.equal(written, before)
    meter.end()
    assert.deepEqual(screen(written), [])
  })

  it('progress on a terminal never reaches the last column', () => {
    startProgress(contextOf(true), 'image').show({ text: 'x'.repeat(200), percent: 1 })
    assert.equal(screen(written)[0]?.length, 69)
  })

  it('progress on a terminal has a line for each item, removed as each ends', () => {
    const board = startBoard(contextOf(true))
    const [a, b] = [board.item('layer a'), board.item('layer b')]
    a.show({ text: 'waits' })
    b.show({ text: 'sent', percent: 100 })
    assert.deepEqual(screen(written), ['layer a: waits', 'layer b: sent [####################] 100 %'])
    a.show({ text: 'begins' })
    assert.deepEqual(screen(written)[0], 'layer a: begins')
    a.end()
    assert.deepEqual(screen(written), ['layer b: sent [####################] 100 %'])
    board.end()
    assert.deepEqual(screen(written), [])
  })

  it('progress on a terminal counts the items that have no line', () => {
    const board = startBoard(contextOf(true))
    for (let index = 0; index < 12; index++) board.item(`layer ${index}`).show({ text: 'waits' })
    assert.equal(screen(written).length, 8)
    assert.equal(screen(written).at(-1), 'and 5 more')
    board.end()
    assert.deepEqual(screen(written), [])
  })

  it('progress on a terminal escapes control characters of names and steps', () => {
    startProgress(contextOf(true), 'vm').show({ text: '\x1b[2Jgone\nand' })
    assert.match(written, /\\u001b\[2Jgone\\nand/)
  })
})

describe('progress in a log', () => {
  it('progress in a log is one line for each step', () => {
    const progress = startProgress(contextOf(false), 'vm demo')
    for (const percent of [0, 10, 20]) progress.show({ text: 'copies', percent })
    progress.show({ text: 'starts' })
    progress.end()
    assert.equal(written, 'svc3: vm demo: copies\nsvc3: vm demo: starts\n')
  })

  it('progress in a log repeats a step that takes long', () => {
    const progress = startProgress(contextOf(false), 'vm demo')
    progress.show({ text: 'copies', percent: 0 })
    nowMs += 29_000
    progress.show({ text: 'copies', percent: 30 })
    nowMs += 2_000
    progress.show({ text: 'copies', percent: 31 })
    assert.equal(written, 'svc3: vm demo: copies\nsvc3: vm demo: copies (31 %)\n')
  })

  it('progress in a log shows bytes every ten seconds', () => {
    const meter = startMeter(contextOf(false), 'image sonoma', 4 * gibi, gibi)
    for (let second = 1; second <= 25; second++) {
      nowMs += 1_000
      meter.at(gibi + second * 2 ** 20)
    }
    assert.equal(
      written,
      'svc3: image sonoma: 1 GiB of 4 GiB, 1 MiB/s, 51 min left (25 %)\nsvc3: image sonoma: 1 GiB of 4 GiB, 1 MiB/s, 51 min left (25 %)\n',
    )
  })
})

describe('no progress', () => {
  it('progress writes nothing with --quiet, JSON or YAML', () => {
    const progress = startProgress(contextOf(true, false), 'vm demo')
    progress.show({ text: 'copies', percent: 1 })
    progress.end()
    assert.equal(written, '')
  })
})

describe('transfer rate', () => {
  it('a transfer shows bytes, rate and time left', () => {
    const told = transferText({ done: gibi, total: 4 * gibi }, 10)
    assert.deepEqual(told, { text: '1 GiB of 4 GiB, 102 MiB/s, 30 s left', percent: 25 })
  })

  it('a transfer whose total follows from a percentage does not show it, since it would jump', () => {
    const { bytes, ...step } = stepOf('saving', { percent: 25, bytes: gibi })
    assert.deepEqual(step, { text: 'saving', percent: 25 })
    assert.ok(bytes)
    const told = startRate(0)(bytes, 10_000)
    assert.deepEqual(told, { text: '1 GiB, 102 MiB/s, 30 s left', percent: 25 })
  })

  it('a transfer counts only what has come since it began', () => {
    const told = transferText({ done: 3 * gibi, total: 4 * gibi, from: 2 * gibi }, 100)
    assert.deepEqual(told, { text: '3 GiB of 4 GiB, 10.2 MiB/s, 2 min left', percent: 75 })
  })

  it('a transfer shows no time left while nothing has come', () => {
    assert.equal(transferText({ done: 0, total: gibi }, 5).text, '0 B of 1 GiB, 0 B/s')
  })

  it('the rate of a transfer follows a slowdown and a restart', () => {
    const rate = startRate(0)
    for (let second = 1; second <= 30; second++)
      rate({ done: second * 2 ** 20 * 100, total: 100 * gibi }, second * 1_000)
    for (let second = 31; second <= 60; second++)
      rate({ done: 3_000 * 2 ** 20 + (second - 30) * 2 ** 20, total: 100 * gibi }, second * 1_000)
    assert.match(rate({ done: 3_031 * 2 ** 20, total: 100 * gibi }, 61_000).text, /, 1 MiB\/s, /)
    assert.match(rate({ done: 2 ** 20, total: 100 * gibi }, 62_000).text, /, 0 B\/s$/)
  })
})
