// Widths and visibility of columns.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { allowedWidth, choiceFrom, columnWidths, isChoosable, noChoice, shownColumns } from './columns.ts'

const name = { title: 'Name', look: 'name', contentPx: 300, titlePx: 60 }
const owner = { title: 'Owner', contentPx: 200, titlePx: 70 }
const memory = { title: 'Memory', look: 'number lesser', contentPx: 90, titlePx: 80 }
const actions = { title: 'Actions', look: 'end', contentPx: 50, titlePx: 24 }
const columns = [name, owner, memory, actions]
const sum = (widths: readonly number[]): number => widths.reduce((all, each) => all + each, 0)

describe('columns of a table', () => {
  it('columns are as wide as their content and share spare width', () => {
    assert.deepEqual(columnWidths(columns, noChoice, 640), [300, 200, 90, 50])
    const wide = columnWidths(columns, noChoice, 1_230)
    assert.deepEqual(wide.map(Math.round), [600, 400, 180, 50])
    const withSentence = columnWidths(
      [...columns, { title: 'Event', look: 'sentence', contentPx: 100, titlePx: 50 }],
      noChoice,
      1_230,
    )
    assert.ok((withSentence[4] ?? 0) > 550, String(withSentence))
  })

  it('the name is cut only if no other column can shrink further', () => {
    const [namePx, ownerPx, memoryPx] = columnWidths(columns, noChoice, 540)
    assert.deepEqual([namePx, Math.round(ownerPx ?? 0), memoryPx], [300, 100, 90])
    const [cutNamePx, leastPx] = columnWidths(columns, noChoice, 400)
    assert.deepEqual([Math.round(cutNamePx ?? 0), leastPx], [168, 92])
    const short = columnWidths([name, { ...owner, look: 'short' }, memory, actions], noChoice, 400)
    assert.deepEqual(short, [120, 200, 90, 50])
    // If that is not enough, the table is wider than its box.
    assert.deepEqual(columnWidths(columns, noChoice, 100), [120, 92, 90, 50])
  })

  it('a width that the user chose is kept, and the other columns share the rest', () => {
    const chosen = { ...noChoice, widths: { Owner: 90 } }
    assert.deepEqual(columnWidths(columns, chosen, 530), [300, 90, 90, 50])
    assert.equal(sum(columnWidths(columns, { ...noChoice, widths: { Name: 50, Owner: 50, Memory: 50 } }, 500)), 500)
    assert.deepEqual([allowedWidth(-5), allowedWidth(99.6), allowedWidth(1e9)], [48, 100, 2_000])
  })

  it('columns fill the table or are as narrow as possible, for any content', () => {
    const px = fc.integer({ min: 0, max: 3_000 })
    const column = fc.record({
      title: fc.constantFrom('a', 'b', 'c', 'd'),
      look: fc.constantFrom('', 'name', 'number', 'short', 'sentence', 'end', 'wide lesser'),
      contentPx: px,
      titlePx: fc.integer({ min: 0, max: 200 }),
    })
    const property = fc.property(fc.array(column, { minLength: 1, maxLength: 12 }), px, (any, tablePx) => {
      const widths = columnWidths(any, noChoice, tablePx)
      assert.ok(widths.every((each) => Number.isFinite(each) && each >= 0))
      assert.ok(sum(widths) >= tablePx - 0.001, `${sum(widths)} of ${tablePx}`)
      // Wider than its box only if no column can shrink further.
      if (sum(widths) <= tablePx + 0.001) return
      for (const [index, { look, titlePx }] of any.entries()) {
        if (look === 'number' || look === 'short' || look === 'end') continue
        const least = look === 'name' ? Math.max(120, 0.3 * tablePx) : tablePx < 640 ? 92 : 100
        assert.ok(
          (widths[index] ?? 0) <= Math.max(48, titlePx, least) + 0.001,
          `${look} ${widths[index]} of ${tablePx}`,
        )
      }
    })
    fc.assert(property)
  })

  it('small tables hide lesser columns unless the user chose them', () => {
    const titles = (px: number, choice = noChoice) => shownColumns(columns, choice, px).map(({ title }) => title)
    assert.deepEqual(titles(1_000), ['Name', 'Owner', 'Memory', 'Actions'])
    assert.deepEqual(titles(800), ['Name', 'Owner', 'Actions'])
    const choice = { ...noChoice, shown: { Memory: true, Owner: false, Name: false, Actions: false } }
    assert.deepEqual(titles(300, choice), ['Name', 'Memory', 'Actions'])
    assert.deepEqual(columns.map(isChoosable), [false, true, true, false])
  })

  it('invalid stored column choices are ignored', () => {
    for (const stored of [
      null,
      '',
      '{',
      'null',
      '7',
      '{"widths":3,"shown":[]}',
      '{"widths":{"a":"x","b":1e9},"shown":{"a":1}}',
    ])
      assert.deepEqual(choiceFrom(stored), noChoice, String(stored))
    const choice = { widths: { Name: 200 }, shown: { Owner: false } }
    assert.deepEqual(choiceFrom(JSON.stringify(choice)), choice)
  })
})
