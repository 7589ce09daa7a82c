// Search, filters and order of rows, and their URL parameters.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Filter, filtered, inOrder, occurringIn, searched, sortFrom, sortText, withChosen } from './filters.ts'

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
  it('rows match all search words and filters', () => {
    const by = (query: string): string[] => names(filtered(rows, filters, new URLSearchParams(query)))
    assert.equal(filtered(rows, filters, new URLSearchParams('other=1')), rows)
    assert.deepEqual(by('state=running&tag=ios'), ['vm-10'])
    assert.deepEqual(by('node=mac-1'), ['vm-10', 'web'])
    assert.deepEqual(by('state=gone'), [])
    assert.equal(searched(rows, '  ', textOf), rows)
    assert.deepEqual(names(searched(rows, 'IOS vm', textOf)), ['vm-10', 'vm-2'])
    assert.deepEqual(names(searched(rows, 'ios web', textOf)), [])
  })

  it('a filter offers the values that occur and the chosen value', () => {
    const [state, tag, node] = filters as [Filter<Row>, Filter<Row>, Filter<Row>]
    const values = (filter: Filter<Row>, chosen = ''): readonly string[] =>
      withChosen(occurringIn(filter, rows).values, chosen)
    assert.deepEqual(values(state), ['running', 'stopped'])
    assert.deepEqual(values(tag), ['ci', 'ios'])
    assert.deepEqual(values(node, 'mac-0'), ['mac-0', 'mac-1'])
    assert.equal(values(node, 'mac-1').length, 1)
  })

  it('the order is kept in the URL; unknown columns are ignored', () => {
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
})
