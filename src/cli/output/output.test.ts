// Tables, times and suggestions without commands.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { nearest } from '../line/suggest.ts'
import { ago, type OutputColumn, render } from './output.ts'

const now = new Date('2026-11-15T12:00:00Z')
const columns: OutputColumn<{ name: string; at?: string; size?: number }>[] = [
  { header: 'NAME', cell: (item) => item.name },
  { header: 'AGE', cell: (item) => item.at && { time: item.at } },
  { header: 'SIZE', wide: true, cell: (item) => item.size },
]
const items = [{ name: 'é-long-name', at: '2026-11-15T11:59:30Z', size: 3 }, { name: 'b' }]

describe('tables', () => {
  it('tables align by characters on a terminal, and mark missing values', async () => {
    const text = await render(items, columns, { format: 'wide', isTerminal: true, color: false, now })
    assert.equal(text, 'NAME          AGE        SIZE\né-long-name   just now   3\nb             -          -\n')
  })

  it('tables keep tabs and newlines out of a pipe’s columns', async () => {
    const text = await render([{ name: 'a\tb\nc' }], columns, { format: 'table', isTerminal: false, color: true, now })
    assert.equal(text, 'NAME\tAGE\na\\tb\\nc\t\n')
  })

  it('tables hold thousands of rows', async () => {
    const many = Array.from({ length: 200_000 }, (_, index) => ({ name: `n${index}` }))
    const text = await render(many, columns, { format: 'table', isTerminal: true, color: false, now })
    assert.equal(text.split('\n').length, 200_002)
  })
})

describe('data', () => {
  const hostile = 'a\u001b[2Jb\u009b1mc\u202ed\u2066e\u2028f\u2029g\u007fh\ti\nj'
  for (const format of ['json', 'yaml'] as const)
    for (const isTerminal of [true, false])
      it(`data in ${format} ${isTerminal ? 'on a terminal' : 'in a pipe'} have no control characters`, async () => {
        const records = [{ name: hostile, labels: { [hostile]: hostile } }]
        const text = await render(records, columns, { format, isTerminal, color: false, now })
        assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u)
        assert.deepEqual(parse(text), records)
      })
})

describe('times', () => {
  const cases = {
    '2026-11-15T11:59:01Z': 'just now',
    '2026-11-15T11:59:00Z': '1 min ago',
    '2026-11-15T10:00:00Z': '2 h ago',
    '2026-11-12T11:00:00Z': '3 d ago',
    '2026-10-01T00:00:00Z': '2026-10-01',
    '2026-11-15T12:00:05Z': 'just now',
    '2026-11-15T13:00:00Z': '2026-11-15T13:00:00Z',
    'not a time': 'not a time',
  }
  for (const [time, text] of Object.entries(cases))
    it(`the time ${time} is shown as ${text}`, () => assert.equal(ago(time, now), text))
})

describe('suggestions', () => {
  const words = ['list', 'add', 'remove', 'registrycredential']
  const cases = {
    lsit: 'list',
    ad: 'add',
    REMOVE: 'remove',
    regi: 'registrycredential',
    rm: undefined,
    xyzzy: undefined,
    '': undefined,
  }
  for (const [word, wanted] of Object.entries(cases)) {
    it(`the word nearest to "${word}" is ${wanted}`, () => assert.equal(nearest(word, words), wanted))
  }
})
