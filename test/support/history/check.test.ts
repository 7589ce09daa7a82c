// The checker of histories finds planted violations, each by its rule, and accepts correct histories.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkHistory } from './check.ts'
import { type HistoryRecord, type Listing, type Operation, readHistory, type Stream, writeHistory } from './history.ts'
import { illegal, linearize, type Step, type Timed } from './linearize.ts'

const key = 'things/a'
const told = (startMs: number, endMs: number, session: string) => ({
  type: 'operation' as const,
  key,
  session,
  server: 's1',
  startMs,
  endMs,
  isLinearizable: true,
})
type Rest = Partial<Operation> & Pick<Operation, 'act'>
const did = (startMs: number, endMs: number, rest: Rest, session = 'one'): Operation => ({
  ...told(startMs, endMs, session),
  outcome: 'ok',
  ...rest,
})
const cut = (startMs: number, rest: Rest): Operation => {
  const { endMs: _, ...operation } = did(startMs, 0, rest)
  return { ...operation, outcome: 'unknown' }
}
const list = (startMs: number, rev: string, items: Listing['items'], session = 'one'): Listing => {
  const { key: asked, ...rest } = told(startMs, startMs + 1, session)
  return { ...rest, type: 'list', collection: 'things', keys: [asked], items, rev }
}
const stream = (events: Stream['events'], from?: string): Stream => ({
  type: 'stream',
  chain: 'w1',
  session: 'watcher',
  server: 's2',
  collection: 'things',
  events,
  ...(from !== undefined && { from }),
})
const added = { type: 'ADDED', key, value: 'x', version: '5' } as const
const modified = { type: 'MODIFIED', key, value: 'y', version: '7' } as const
const deleted = { type: 'DELETED', key, value: 'y', version: '9' } as const
const bookmark = (version: string) => ({ type: 'BOOKMARK', version }) as const

const create = did(0, 10, { act: 'create', value: 'x', version: '5' })
const update = did(20, 30, { act: 'update', value: 'y', expected: '5', version: '7' }, 'two')
const remove = did(40, 50, { act: 'delete' })
const right: readonly HistoryRecord[] = [
  create,
  did(11, 12, { act: 'read', value: 'x', version: '5' }),
  did(12, 25, { act: 'create', value: 'z', outcome: 'exists' }, 'three'),
  update,
  did(21, 35, { act: 'update', value: 'q', expected: '5', outcome: 'conflict' }, 'three'),
  list(36, '7', { [key]: { value: 'y', version: '7' } }),
  remove,
  did(51, 52, { act: 'delete', outcome: 'absent' }, 'two'),
  stream([added, modified], '0'),
  stream([bookmark('8'), deleted, bookmark('12')], '7'),
]
const without = (...gone: readonly HistoryRecord[]) => right.filter((each) => !gone.includes(each))

/** What is planted → the rule that must find it, and the history. */
const planted: Readonly<Record<string, readonly [string, readonly HistoryRecord[]]>> = {
  'a stale read': ['linearizable', [...right, did(31, 33, { act: 'read', value: 'x', version: '5' }, 'four')]],
  'a read of what was deleted': [
    'linearizable',
    [...right, did(60, 61, { act: 'read', value: 'y', version: '7' }, 'four')],
  ],
  'a read of what nobody wrote': ['linearizable', [...right, did(60, 61, { act: 'read', value: 'w' }, 'four')]],
  'a write that vanished': ['linearizable', [create, did(60, 61, { act: 'read' }, 'four')]],
  'a list that is behind': ['linearizable', [...right, list(60, '7', { [key]: { value: 'y', version: '7' } }, 'four')]],
  'a lost update': [
    'update by version',
    [...right, did(25, 34, { act: 'update', value: 'p', expected: '5', version: '8' }, 'four')],
  ],
  'a lost update, by what was read': [
    'linearizable',
    [...right, did(25, 34, { act: 'update', value: 'p', expected: '5', version: '8' }, 'four')],
  ],
  'two that created the same': [
    'linearizable',
    [create, did(5, 15, { act: 'create', value: 'k', version: '6' }, 'four')],
  ],
  'a dirty delete: answered, and still there': [
    'linearizable',
    [create, remove, did(60, 61, { act: 'read', value: 'x', version: '5' }, 'four')],
  ],
  'a deletion of nothing': ['linearizable', [...right, did(60, 61, { act: 'delete' }, 'four')]],
  'a refused write that happened': [
    'refused is not done',
    [...right, did(31, 33, { act: 'put', value: 'y', outcome: 'never' }, 'four')],
  ],
  'a write that happened twice': ['carried out once', [...without(), stream([{ ...modified, version: '11' }], '9')]],
  'a version that is two things': [
    'one meaning',
    [...right, list(36, '7', { [key]: { value: 'other', version: '7' } }, 'four')],
  ],
  'a list of two moments': [
    'lists are of one moment',
    [...right, list(36, '7', { [key]: { value: 'x', version: '5' } }, 'four')],
  ],
  'a watch with a gap': ['watches without gaps', [create, update, stream([added, bookmark('8')], '0')]],
  'a watch with a gap between two connections': [
    'watches without gaps',
    [create, update, remove, stream([added], '0'), stream([deleted, bookmark('12')], '7')],
  ],
  'a watch that begins with less than there was': ['watches without gaps', [create, stream([bookmark('6')])]],
  'a watch in a wrong order': ['watches in order', [create, update, stream([modified, added, bookmark('8')], '0')]],
  'a watch that repeats': ['watches in order', [create, stream([added, added, bookmark('8')], '0')]],
  'a watch that goes back before its bookmark': ['watches in order', [create, stream([bookmark('8'), added], '0')]],
  'a watch that says MODIFIED of what is not there': ['watches in order', [stream([bookmark('1'), modified])]],
  'a session that goes back': [
    'sessions never go back',
    [...right, { ...did(60, 61, { act: 'read', value: 'x', version: '5' }, 'two'), isLinearizable: false }],
  ],
  'a session that does not see its own write': [
    'sessions never go back',
    [create, { ...did(15, 16, { act: 'read' }), isLinearizable: false }],
  ],
}

describe('the checker of histories', () => {
  it('the checker of histories has nothing against one that is right', () => assert.deepEqual(checkHistory(right), []))

  for (const [name, [rule, records]] of Object.entries(planted))
    it(`the checker of histories finds ${name}`, () => {
      const found = checkHistory(records)
      assert.ok(
        found.some((violation) => violation.rule === rule),
        JSON.stringify(found, undefined, 2),
      )
    })

  it('the checker of histories leaves what was cut off open: it may have happened, also later, or not', () => {
    const put = cut(5, { act: 'put', value: 'k' })
    const read = (atMs: number, value: string) => did(atMs, atMs + 1, { act: 'read', value }, 'four')
    assert.deepEqual(checkHistory([create, put, read(20, 'x')]), [])
    assert.deepEqual(checkHistory([create, put, read(20, 'x'), read(90, 'k')]), [])
    assert.equal(checkHistory([create, put, read(20, 'k'), read(90, 'x')]).length, 1)
  })

  it('the checker of histories takes a deletion while a watch begins for what it is', () => {
    const began = { ...added, version: '7', value: 'y' } as const
    assert.deepEqual(checkHistory([create, update, remove, stream([began, deleted, bookmark('12')])]), [])
  })

  it('the checker of histories does not expect the latest of a session that was not promised it', () => {
    const stale = { ...did(60, 61, { act: 'read', value: 'x', version: '5' }, 'four'), isLinearizable: false }
    assert.deepEqual(checkHistory([...right, stale]), [])
  })

  it('the checker of histories judges the parts of a record by themselves, and its versions as a whole', () => {
    const tag = (startMs: number, part: string, record: string, version: string, more: Partial<Operation> = {}) =>
      did(startMs, startMs + 1, { act: 'put', key: `nodes/n#${part}`, value: 'on', record, version, ...more })
    const node = (startMs: number, value: string, version: string): Listing => ({
      ...list(startMs, version, { 'nodes/n': { value, version } }),
      collection: 'nodes',
      keys: ['nodes/n#t1', 'nodes/n#t2'],
    })
    const ok = [tag(0, 't1', 't1', '3'), tag(2, 't2', 't1 t2', '4'), node(5, 't1 t2', '4')]
    assert.deepEqual(checkHistory(ok), [])
    const lost = [tag(0, 't1', 't1', '3'), tag(2, 't2', 't2', '4'), node(5, 't2', '4')]
    assert.deepEqual(
      checkHistory(lost).map(({ rule }) => rule),
      ['linearizable'],
    )
    const stale = [...ok, tag(7, 't3', 't1 t2 t3', '6', { act: 'update', expected: '3' })]
    assert.deepEqual(
      checkHistory(stale).map(({ rule }) => rule),
      ['update by version'],
    )
  })

  it('the checker of histories finds the same in a file', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-history-'))
    const file = path.join(folder, 'history.jsonl')
    const [, records] = planted['a stale read'] ?? ['', []]
    writeHistory(file, records)
    assert.deepEqual(checkHistory(readHistory(file)), JSON.parse(JSON.stringify(checkHistory(records))))
    fs.rmSync(folder, { recursive: true })
  })
})

interface Small extends Timed {
  readonly id: number
  readonly act: 'write' | 'read'
  readonly value: number
}

describe('linearize', () => {
  const step: Step<number, Small> = (state, { act, value }) =>
    act === 'write' ? value : state === value ? state : illegal

  /** All orders, by definition. */
  const isPossible = (left: readonly Small[], state: number): boolean => {
    const done = left.filter(({ endMs }) => endMs !== undefined)
    if (done.length === 0) return true
    const firstEnd = Math.min(...done.map(({ endMs = 0 }) => endMs))
    return left
      .filter(({ startMs }) => startMs <= firstEnd)
      .some((each) => {
        const after = step(state, each)
        return after !== illegal && isPossible(left.filter((other) => other !== each), after) // biome-ignore format: one thought
      })
  }

  it('linearize judges every small history as trying all orders does', () => {
    const operation = fc.record({
      act: fc.constantFrom('write' as const, 'read' as const),
      value: fc.integer({ min: 0, max: 2 }),
      startMs: fc.integer({ min: 0, max: 12 }),
      lengthMs: fc.integer({ min: 0, max: 6 }),
      isCut: fc.boolean(),
    })
    let possible = 0
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 7 }), (drawn) => {
        const operations = drawn.map(({ act, value, startMs, lengthMs, isCut }, id): Small => {
          const isOpen = isCut && act === 'write'
          return { id, act, value, startMs, ...(!isOpen && { endMs: startMs + lengthMs }) }
        })
        const expected = isPossible(operations, 0)
        if (expected) possible += 1
        assert.equal(linearize(operations, 0, step).isLinearizable, expected)
      }),
      { numRuns: 3_000 },
    )
    assert.ok(possible > 300 && possible < 2_700, `${possible} of them are possible`)
  })
})
