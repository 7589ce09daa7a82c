// The rows of the mapping are those of docs/spec.md R50.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { allOperations } from '../api/index.ts'
import { documentationOf, reasonFor } from './advice.ts'
import { callsAt, callTo, unknownPart } from './find.ts'
import { legacyRows } from './map.ts'
import { legacyPage } from './page.ts'
import type { LegacyRow } from './row.ts'

interface Line {
  readonly group: string
  readonly calls: readonly string[]
  readonly fate: LegacyRow['fate']
  readonly operations: readonly string[]
  readonly commands: readonly string[]
}

const spec = path.resolve(import.meta.dirname, '../../docs/spec.md')
const anyName = (text: string): string => text.replaceAll(/\{\w+\}/g, '{}')

/** `GET,POST /users` → both calls. */
const callsIn = (cell: string): string[] =>
  [...cell.matchAll(/`([A-Z,]+) (NS)?(\/[^`]+)`/g)].flatMap(([, methods = '', inNamespace, rest = '']) =>
    methods
      .split(',')
      .map((method) => anyName(`${method} ${inNamespace ? '/api/v1/namespaces/{namespace}' : ''}${rest}`)),
  )

function linesOf(text: string): Line[] {
  let group = ''
  return text.split('\n').flatMap((line): Line[] => {
    group = /^### (.+)$/.exec(line)?.[1] ?? group
    const [, left = '', right = ''] = /^\| (`.+) \| (.+) \|$/.exec(line) ?? []
    if (left === '') return []
    const fate = right.startsWith('Removed') ? 'removed' : right.startsWith('No endpoint') ? 'no-endpoint' : 'replaced'
    const commands = [...right.matchAll(/`(svc3 [^`]+)`/g)].map((match) => match[1] ?? '')
    return [{ group, calls: callsIn(left), fate, operations: callsIn(right), commands }]
  })
}

const lines = linesOf(fs.readFileSync(spec, 'utf8').split('## The API of 2.4.x')[1] ?? '')
const lineOf = ({ group, calls, fate, operations, commands }: LegacyRow): Line => ({
  group,
  calls: calls.map(({ method, path: place }) => anyName(`${method} ${place}`)),
  fate,
  operations: operations.map(({ method, path: place }) => anyName(`${method} ${place}`)),
  commands,
})

describe('legacy mapping', () => {
  it('the 2.4.x mapping has a row for every line of docs/spec.md R50, in its order, and no other', () => {
    assert.equal(lines.length, 51)
    const sorted = (texts: readonly string[]): string[] => [...texts].sort()
    assert.deepEqual(
      legacyRows
        .map(lineOf)
        .map(({ group, calls, fate, operations }) => ({ group, calls: sorted(calls), fate, operations })),
      lines.map(({ group, calls, fate, operations }) => ({ group, calls: sorted(calls), fate, operations })),
    )
  })

  it('the 2.4.x mapping gives each reason once, and names the operations to use', () => {
    const reasons = legacyRows.map((row) => reasonFor(row) ?? '')
    for (const reason of reasons) assert.doesNotMatch(reason, /no API endpoint.*no API endpoint/)
    assert.ok(reasons.some((reason) => /\/vms and GET \S+\/vmconfigs$/.test(reason)))
  })

  it('the 2.4.x mapping names the commands that docs/spec.md R50 names', () => {
    for (const [index, { commands }] of lines.entries())
      for (const command of commands)
        assert.ok(
          legacyRows[index]?.commands.some((line) => line.startsWith(command)),
          command,
        )
  })

  it('the 2.4.x mapping has operations as replacements', () => {
    for (const { operations } of legacyRows)
      for (const each of operations) assert.ok(allOperations.includes(each as never), each.id)
  })

  it('the 2.4.x mapping advises what to do for every row', () => {
    for (const row of legacyRows) {
      assert.ok(row.advice.length > 10)
      if (row.fate === 'replaced') assert.ok(row.operations.length > 0)
    }
    assert.equal(new Set(legacyRows.map(documentationOf)).size, legacyRows.length)
  })

  it('docs/reference/orka-2.4.md has an anchor for every row of the 2.4.x mapping', () => {
    const page = legacyPage()
    for (const { anchor } of legacyRows) assert.equal(page.split(`<a id="${anchor}"></a>`).length, 2, anchor)
  })
})

describe('finding a legacy call', () => {
  const pathOf = (method: string, place: string): string | undefined => {
    const found = callTo(method, place)
    return found && `${found.call.method} ${found.call.path}`
  }

  it('finding a legacy call prefers the path without parameters', () => {
    assert.equal(pathOf('GET', '/resources/vm/list/all'), 'GET /resources/vm/list/all')
    assert.equal(pathOf('GET', '/resources/vm/list/ada@example.com'), 'GET /resources/vm/list/{user}')
    assert.equal(pathOf('POST', '/users/groups/$ungrouped'), 'POST /users/groups/$ungrouped')
  })

  it('finding a legacy call distinguishes methods', () => {
    assert.equal(pathOf('DELETE', '/resources/node/tag/ios'), 'DELETE /resources/node/tag/{tag}')
    assert.equal(pathOf('POST', '/resources/node/tag/ios'), 'POST /resources/node/tag/{tag}')
    assert.equal(pathOf('PUT', '/resources/vm/deploy'), undefined)
  })

  it('finding a legacy call accepts unknown parts', () => {
    assert.equal(callsAt(`/resources/vm/exec/${unknownPart}`).length, 5)
    assert.equal(callTo('POST', `/resources/vm/exec/${unknownPart}`)?.row.operations[0]?.id, 'execVm')
    assert.equal(pathOf('GET', `/resources/vm/status/${unknownPart}`), 'GET /resources/vm/status/{vm}')
  })

  it('finding a legacy call ignores other paths', () => {
    for (const place of ['/resources/vm', '/resources/vm/list.txt', '/api/v1/token', '/', '/resources/vm/list/a/b'])
      assert.equal(callTo('GET', place), undefined, place)
  })

  it('finding a legacy call handles a query and a trailing slash', () => {
    assert.equal(callTo('GET', '/version/?all=true')?.row.anchor, 'get-health-check')
    assert.equal(pathOf('POST', '/logs/query?limit=5'), 'POST /logs/query')
  })
})
