// Tables in a terminal of a given width: nothing wraps, what names things stays longest, colours take no room.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Column, growingTable, type Rendering, render } from './output.ts'
import { cut, widthOf } from './text-width.ts'

interface Item {
  readonly name: string
  readonly about: string
  readonly state: string
  readonly bytes: number
}
const columns: readonly Column<Item>[] = [
  { header: 'NAME', cell: ({ name }) => name },
  { header: 'DESCRIPTION', cell: ({ about }) => about },
  { header: 'SIZE', cell: ({ bytes }) => ({ bytes }) },
  { header: 'STATE', cell: ({ state }) => state },
]
const item = {
  name: 'macos-sonoma-14.5',
  about: 'Xcode 15.4 with all simulators',
  state: 'Ready',
  bytes: 96_636_764_160,
}
const how = (columns: number | undefined, color = false): Rendering => ({
  format: 'table',
  isTerminal: true,
  color,
  now: new Date(0),
  columns,
})
const esc = '\x1b'
const withoutColors = (text: string): string => text.replaceAll(new RegExp(`${esc}\\[\\d+m`, 'g'), '')

describe('a table', () => {
  it('is as wide as it has to be where there is room', async () => {
    assert.equal(
      await render([item], columns, how(80)),
      'NAME                DESCRIPTION                      SIZE   STATE\nmacos-sonoma-14.5   Xcode 15.4 with all simulators   90G    Ready\n',
    )
    assert.equal(await render([item], columns, how(undefined)), await render([item], columns, how(500)))
  })

  it('closes its gaps first, then cuts the widest columns, and the name last', async () => {
    const at = async (width: number) => (await render([item], columns, how(width))).split('\n')[1]
    assert.equal(await at(62), 'macos-sonoma-14.5  Xcode 15.4 with all simulators  90G   Ready')
    assert.equal(await at(60), 'macos-sonoma-14.5 Xcode 15.4 with all simulators 90G  Ready')
    assert.equal(await at(50), 'macos-sonoma-14.5   Xcode 15.4 wit…   90G    Ready')
    assert.equal(await at(20), 'macos-sonoma-14…   …')
  })

  it('never wraps, whatever is in it and however narrow the terminal', async () => {
    const text = fc.oneof(fc.string({ maxLength: 60 }), fc.string({ unit: 'grapheme', maxLength: 30 }))
    const items = fc.array(fc.record({ name: text, about: text, state: text, bytes: fc.nat() }), { maxLength: 5 })
    const property = fc.asyncProperty(items, fc.integer({ min: 1, max: 150 }), async (rows, width) => {
      const plain = await render(rows, columns, how(width))
      const lines = plain.split('\n').slice(0, -1)
      assert.equal(lines.length, rows.length + 1)
      for (const line of lines) assert.ok(widthOf(line) <= width, `${widthOf(line)} > ${width}: ${line}`)
      assert.equal(withoutColors(await render(rows, columns, how(width, true))), plain)
    })
    await fc.assert(property, { numRuns: 300 })
  })

  it('colours the header and what is well, under way or wrong', async () => {
    const states = ['Running', 'Pending', 'Failed', 'Updating 40 %', 'odd']
    const text = await render(
      states.map((state) => ({ ...item, state })),
      columns,
      how(100, true),
    )
    const [header, ...rows] = text.split('\n').slice(0, -1)
    assert.ok(header?.startsWith('\x1b[1mNAME'))
    assert.deepEqual(
      rows.map((row) => row.split(esc)[1]?.slice(0, 4)),
      ['[32m', '[33m', '[31m', '[33m', undefined],
    )
  })

  it('in a pipe is exact, uncut and without colours', async () => {
    const text = await render([item], columns, { ...how(20, true), isTerminal: false })
    assert.equal(text.split('\n')[1], 'macos-sonoma-14.5\tXcode 15.4 with all simulators\t96636764160\tReady')
  })

  it('that grows fits, too', async () => {
    const row = await growingTable(columns, how(50))
    const lines = (row(item) + row({ ...item, name: 'x'.repeat(40) })).split('\n').slice(0, -1)
    assert.equal(lines.length, 3)
    for (const line of lines) assert.ok(widthOf(line) <= 50, line)
  })
})

describe('width', () => {
  it('is counted in columns of the terminal', () => {
    const cases = { abc: 3, é: 1, 'e\u0301': 1, 日本: 4, '🙂': 2, '': 0 }
    for (const [text, width] of Object.entries(cases)) assert.equal(widthOf(text), width, text)
  })

  it('is kept when a text is cut', () => {
    assert.equal(cut('日本語', 5), '日本…')
    assert.equal(cut('日本語', 4), '日…')
    assert.equal(cut('abcdef', 3), 'ab…')
    assert.equal(cut('abc', 3), 'abc')
    assert.equal(cut('abc', 0), '')
  })
})
