// Rows that a table shows: search, filters, order, and what of it the address says.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { changesBetween } from './changes.ts'
import { type Filter, filtered, inOrder, occurringIn, offered, searched, sortFrom, sortText } from './filters.ts'

interface Row {
  readonly name: string
  readonly state: string
  readonly tags: readonly string[]
  readonly node?: string
}
const rows: readonly Row[] = [
  { name: 'vm-10', state: 'running', tags: ['ios', 'ci'], node: 'mac-1' },
  { name: 'vm-2', state: 'stopped', tags: ['ios'] },
  { name: 'web', state: 'running', tags: [], node: 'mac-1' },
]
const filters: readonly Filter<Row>[] = [
  { param: 'state', label: 'State', of: ({ state }) => state },
  { param: 'tag', label: 'Tags', of: ({ tags }) => tags },
  { param: 'node', label: 'Node', of: ({ node }) => node },
]
const names = (found: readonly Row[]): string[] => found.map(({ name }) => name)
const nameOf = ({ name }: Row): string => name
const textOf = ({ name, state, tags }: Row): string => [name, state, ...tags].join(' ')

describe('rows of a table', () => {
  it('rows of a table are found by search words and filters, all of which have to match', () => {
    const by = (query: string): string[] => names(filtered(rows, filters, new URLSearchParams(query)))
    assert.equal(filtered(rows, filters, new URLSearchParams('other=1')), rows)
    assert.deepEqual(by('state=running&tag=ios'), ['vm-10'])
    assert.deepEqual(by('node=mac-1'), ['vm-10', 'web'])
    assert.deepEqual(by('state=gone'), [])
    assert.equal(searched(rows, '  ', textOf), rows)
    assert.deepEqual(names(searched(rows, 'IOS vm', textOf)), ['vm-10', 'vm-2'])
    assert.deepEqual(names(searched(rows, 'ios web', textOf)), [])
  })

  it('a filter of a table offers what occurs, and what is chosen even if it occurs no longer', () => {
    const [state, tag, node] = filters as [Filter<Row>, Filter<Row>, Filter<Row>]
    const values = (filter: Filter<Row>, chosen = ''): readonly string[] =>
      offered(occurringIn(filter, rows).values, chosen)
    assert.deepEqual(values(state), ['running', 'stopped'])
    assert.deepEqual(values(tag), ['ci', 'ios'])
    assert.deepEqual(values(node, 'mac-0'), ['mac-0', 'mac-1'])
    assert.equal(values(node, 'mac-1').length, 1)
  })

  it('the order of a table stands in its address, and an address that names no column changes nothing', () => {
    const first = { column: 'Name', isDown: false }
    const titles = ['Name', 'Last seen']
    const sort = { column: 'Last seen', isDown: true }
    assert.equal(sortText(sort), '-last-seen')
    assert.deepEqual(sortFrom(sortText(sort), titles, first), sort)
    for (const text of [null, '', '-', 'nothing', '-nothing']) assert.deepEqual(sortFrom(text, titles, first), first)
    assert.deepEqual(names(inOrder(rows, { by: nameOf, isDown: false, keyOf: nameOf })), ['vm-2', 'vm-10', 'web'])
    assert.deepEqual(names(inOrder(rows, { by: ({ tags }) => tags.length, isDown: true, keyOf: nameOf })), [
      'vm-10',
      'vm-2',
      'web',
    ])
  })

  it('the order of a table and what its filters offer, carried on over any changes, are those of the whole list', () => {
    const row = fc.record({
      name: fc.stringMatching(/^[ab][0-9]{0,2}$/),
      state: fc.constantFrom('running', 'stopped'),
      tags: fc.subarray(['ci', 'ios', 'mac']),
    })
    const list = fc.uniqueArray(row, { selector: nameOf, maxLength: 12 })
    const change = fc.record({ drop: fc.array(fc.nat(11)), replace: fc.array(fc.nat(11)), add: list })
    const by = fc.constantFrom<((row: Row) => string | number)[]>(
      nameOf,
      ({ state }) => state,
      ({ tags }) => tags.length,
    )
    const property = fc.property(
      list,
      fc.array(change, { maxLength: 4 }),
      by,
      fc.boolean(),
      (first, steps, key, isDown) => {
        const order = { by: key, isDown, keyOf: nameOf }
        const filter = filters[1] as Filter<Row>
        let before: readonly Row[] = first
        let [sorted, occurring] = [inOrder(before, order), occurringIn(filter, before)]
        for (const { drop, replace, add } of steps) {
          const names = new Set(before.map(nameOf))
          const now = [
            ...before.flatMap((each, index) =>
              drop.includes(index) ? [] : [replace.includes(index) ? { ...each, tags: ['new'] } : each],
            ),
            ...add.filter(({ name }) => !names.has(name)),
          ]
          const { gone, come } = changesBetween(before, now)
          assert.deepEqual(new Set(gone), new Set(before.filter((each) => !now.includes(each))))
          assert.deepEqual(new Set(come), new Set(now.filter((each) => !before.includes(each))))
          sorted = inOrder(now, order, { rows: before, result: sorted })
          occurring = occurringIn(filter, now, { rows: before, result: occurring })
          before = now
          assert.deepEqual(sorted, inOrder(now, order))
          assert.deepEqual(occurring.values, occurringIn(filter, now).values)
          assert.deepEqual(new Map(occurring.counts), new Map(occurringIn(filter, now).counts))
        }
      },
    )
    fc.assert(property)
  })

  it('a filter of a table offers the same list as long as the same values occur', () => {
    const filter = filters[0] as Filter<Row>
    const before = occurringIn(filter, rows)
    const [, ...others] = rows
    const now = [{ ...(rows[0] as Row), tags: [] }, ...others]
    assert.equal(occurringIn(filter, now, { rows, result: before }).values, before.values)
  })
})
