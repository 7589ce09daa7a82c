// A table that is redrawn in place: changes replace rows, hidden rows are counted, a lost connection is shown.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { liveTable } from './live-table.ts'
import type { Rendering } from './output.ts'

const rendering = (): Rendering => ({ format: 'table', isTerminal: true, color: false, now: new Date(0), columns: 80 })
const plain = [{ header: 'NAME', cell: (name: string) => name }]

function start(rows: number, columns = plain, how = rendering) {
  let written = ''
  const sink = {
    isTerminal: true,
    rows,
    write(text: string | Uint8Array): void {
      written += String(text)
    },
    flush: async () => undefined,
  }
  return { table: liveTable(sink, columns, how, 'No VMs'), text: () => written }
}

describe('live table', () => {
  it('a live table redraws in place, and leaves the last state', async () => {
    const { table, text } = start(24)
    table.show(['a', 'b'])
    await eventually(() => assert.equal(text(), 'NAME\na\nb\n'))
    table.show(['b'])
    table.setStatus('Connection lost; reconnecting…')
    await eventually(() => assert.ok(text().endsWith('\x1b[3A\r\x1b[JNAME\nb\nConnection lost; reconnecting…\n')))
    table.show([])
    await table.end()
    assert.ok(text().endsWith('\x1b[3A\r\x1b[JNo VMs\n'))
  })

  it('a live table is never taller than the terminal', async () => {
    const { table, text } = start(5)
    table.show(['a', 'b', 'c', 'd', 'e', 'f'])
    await table.end()
    assert.equal(text(), 'NAME\na\nb\n… and 4 more lines\n')
  })

  it('a live table leaves the last column free, also where all columns are requested', async () => {
    const wide = ['NAME', 'ONE', 'TWO'].map((header) => ({
      header,
      keep: 'whole' as const,
      cell: (name: string) => name.repeat(40),
    }))
    for (const color of [false, true]) {
      const { table, text } = start(24, wide, () => ({ ...rendering(), format: 'wide', color }))
      table.show(['a', 'b'])
      table.setStatus('c'.repeat(100))
      await eventually(() => assert.match(text(), /c…\n$/))
      await table.end()
      const drawn = stripVTControlCharacters(text()).replaceAll('\r', '').split('\n')
      assert.equal(Math.max(...drawn.map(({ length }) => length)), 79)
    }
  })

  it('a live table whose redraw failed throws at the next change', async () => {
    let calls = 0
    const broken = { header: 'NAME', cell: (): string => assert.fail(`broken ${calls++}`) }
    const { table } = start(24, [broken])
    table.show(['a'])
    await eventually(() => assert.ok(calls > 0))
    await eventually(() => assert.throws(() => table.show(['b']), /broken/))
    await assert.rejects(table.end(), /broken/)
  })
})
