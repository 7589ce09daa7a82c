// Tables in a terminal of a given width: nothing wraps, names are cut last, and colors take no room.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { vmOf } from '../../../test/support/stand-ins/fleet.ts'
import { roughSize } from '../../rules/sizes.ts'
import { columns as vmColumns } from '../commands/vm/parts/columns.ts'
import { growingTable, type OutputColumn, type Rendering, render } from './output.ts'
import { cut, widthOf } from './text-width.ts'

interface Item {
  readonly name: string
  readonly about: string
  readonly state: string
  readonly bytes: number
}
const columns: readonly OutputColumn<Item>[] = [
  { header: 'NAME', cell: ({ name }) => name },
  { header: 'DESCRIPTION', cell: ({ about }) => about },
  { header: 'SIZE', cell: ({ bytes }) => ({ plain: bytes, shown: roughSize(bytes) }) },
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

describe('table', () => {
  it('a table is as wide as necessary if there is room', async () => {
    assert.equal(
      await render([item], columns, how(80)),
      'NAME                DESCRIPTION                      SIZE   STATE\nmacos-sonoma-14.5   Xcode 15.4 with all simulators   90G    Ready\n',
    )
    assert.equal(await render([item], columns, how(undefined)), await render([item], columns, how(500)))
  })

  it('a table closes its gaps first, then cuts the widest columns, and the name last', async () => {
    const at = async (width: number) => (await render([item], columns, how(width))).split('\n')[1]
    assert.equal(await at(62), 'macos-sonoma-14.5  Xcode 15.4 with all simulators  90G   Ready')
    assert.equal(await at(60), 'macos-sonoma-14.5 Xcode 15.4 with all simulators 90G  Ready')
    assert.equal(await at(50), 'macos-sonoma-14.5   Xcode 15.4 wit…   90G    Ready')
    assert.equal(await at(20), 'macos-sonoma-14…   …')
  })

  it('a table never wraps, whatever is in it and however narrow the terminal', async () => {
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

  it('a table colors the header, and states that are good, in progress or bad', async () => {
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

  it('a table in a pipe is exact, uncut and without colors', async () => {
    const text = await render([item], columns, { ...how(20, true), isTerminal: false })
    assert.equal(text.split('\n')[1], 'macos-sonoma-14.5\tXcode 15.4 with all simulators\t96636764160\tReady')
  })

  it('a table that grows fits, too', async () => {
    const row = await growingTable(columns, how(50))
    const lines = (row(item) + row({ ...item, name: 'x'.repeat(40) })).split('\n').slice(0, -1)
    assert.equal(lines.length, 3)
    for (const line of lines) assert.ok(widthOf(line) <= 50, line)
  })
})

describe('vm list', () => {
  const vm = vmOf({
    name: 'ci-runner-ios-release-4711',
    ip: '192.168.100.217',
    image: 'ghcr.io/acme/ios/sonoma:latest',
  })
  const at = async (width: number, format: Rendering['format'] = 'table', shown = vm) =>
    (await render([shown], vmColumns, { ...how(width), format })).split('\n').slice(0, -1)

  it('vm list -o wide cuts long texts, then exceeds the line, and never cuts a name or an address', async () => {
    for (const width of [80, 100, 150, 220]) {
      const [header = '', row = ''] = await at(width, 'wide')
      for (const text of [vm.name, '192.168.100.217', 'Running']) assert.ok(row.includes(text), `${width}: ${row}`)
      assert.equal(header.trim().split(/\s+/).length, vmColumns.filter(({ terminal }) => !terminal).length)
    }
    assert.ok((await at(80, 'wide'))[1]?.includes('ghcr.io/acme/ios/sonoma:latest'))
    assert.ok(widthOf((await at(150, 'wide'))[1] ?? '') <= 150)
  })

  it('vm list hides columns on a narrow terminal, the name and the status last', async () => {
    const headers = async (width: number) => (await at(width))[0]?.trim().split(/\s+/).join(' ')
    assert.equal(await headers(80), 'NAME IP SSH VNC SCREENSHARE STATUS POWER')
    assert.equal(await headers(60), 'NAME IP STATUS POWER')
    assert.equal(await headers(52), 'NAME IP STATUS')
    assert.equal(await headers(40), 'NAME STATUS')
    assert.deepEqual(await at(40), ['NAME                         STATUS', 'ci-runner-ios-release-4711   Running'])
    const long = vmOf({ name: 'x'.repeat(63) })
    assert.deepEqual((await at(40, 'table', long))[1], `${'x'.repeat(29)}…   Running`)
  })
})

describe('columns where there is room', () => {
  const stopped = vmOf({ name: 'demo', powerState: 'stopped' })
  const headers = async (columns: number | undefined, isTerminal = true) => {
    const text = await render([stopped], vmColumns, { ...how(columns), isTerminal })
    return text.split('\n')[0]?.trim().split(/\s+/).slice(5).join(' ')
  }

  it('vm list on a terminal shows the power state beside the status, and more columns if they fit', async () => {
    assert.equal(await headers(64), 'STATUS POWER')
    assert.equal(await headers(80), 'STATUS POWER IMAGE NODE')
    assert.equal(await headers(120), 'STATUS POWER IMAGE NODE AGE')
    assert.equal(await headers(undefined), 'STATUS POWER')
    assert.match(await render([stopped], vmColumns, how(80)), /Running {2,3}stopped/)
  })

  it('vm list in a pipe has the columns that scripts know, however wide the terminal is', async () => {
    assert.equal(await headers(500, false), 'STATUS')
  })
})

describe('text width', () => {
  it('text width is counted in columns of the terminal', () => {
    const cases = { abc: 3, é: 1, 'e\u0301': 1, 日本: 4, '🙂': 2, '': 0 }
    for (const [text, width] of Object.entries(cases)) assert.equal(widthOf(text), width, text)
  })

  it('text width is kept when a text is cut', () => {
    assert.equal(cut('日本語', 5), '日本…')
    assert.equal(cut('日本語', 4), '日…')
    assert.equal(cut('abcdef', 3), 'ab…')
    assert.equal(cut('abc', 3), 'abc')
    assert.equal(cut('abc', 0), '')
  })
})
