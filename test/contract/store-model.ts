// Random command sequences against a plain model of the store: what the examples of the contract did not think of.
// Sequences without reopening or compaction share one store, each under a separate prefix, to be quick.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Change,
  changeKey,
  compareRevs,
  type Entry,
  type Json,
  type Precondition,
  type Rev,
  type Store,
  StoreError,
} from '../../src/store/store.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import type { Engine } from './store.ts'
import { collectTo } from './store-watch.ts'

/** An entry, and whether its revision is compared exactly. */
interface Named {
  readonly name: string
  readonly isRight: boolean
}

type Command =
  | { readonly do: 'create'; readonly name: string; readonly value: Json; readonly preconditions?: readonly Named[] }
  | { readonly do: 'createAtOnce'; readonly names: readonly string[]; readonly value: Json }
  | ({ readonly do: 'update' | 'delete'; readonly value: Json; readonly preconditions?: readonly Named[] } & Named)
  | { readonly do: 'get'; readonly name: string }
  | { readonly do: 'list'; readonly after: string; readonly limit: number }
  | { readonly do: 'watch'; readonly from: number }
  | { readonly do: 'compact'; readonly to: number }
  | { readonly do: 'reopen' }

const name = fc.constantFrom('a', 'b', 'c', 'd/e', '😀', '\uffff')
const value = fc.oneof(fc.integer(), fc.string({ unit: 'binary' }), fc.constant({ nested: [null, true] }))
const preconditions = fc.array(fc.record({ name, isRight: fc.boolean() }), { maxLength: 2 })
const point = fc.double({ min: 0, max: 1, noNaN: true })
const usual: fc.Arbitrary<Command>[] = [
  fc.record({ do: fc.constant('create' as const), name, value }),
  fc.record({ do: fc.constant('create' as const), name, value, preconditions }),
  fc.record({ do: fc.constant('createAtOnce' as const), names: fc.uniqueArray(name, { minLength: 2 }), value }),
  fc.record({ do: fc.constantFrom('update' as const, 'delete' as const), name, value, isRight: fc.boolean() }),
  fc.record({ do: fc.constantFrom('update' as const, 'delete' as const), name, value, isRight: fc.constant(true) }),
  fc.record({ do: fc.constant('update' as const), name, value, isRight: fc.constant(true), preconditions }),
  fc.record({ do: fc.constant('get' as const), name }),
  fc.record({ do: fc.constant('list' as const), after: name, limit: fc.integer({ min: 0, max: 4 }) }),
  fc.record({ do: fc.constant('watch' as const), from: point }),
]
const compaction: fc.Arbitrary<Command> = fc.record({ do: fc.constant('compact' as const), to: point })
const reopening: fc.Arbitrary<Command> = fc.record({ do: fc.constant('reopen' as const) })

/** What the store must look like: every write has the next revision. */
class Model {
  readonly entries = new Map<string, Entry>()
  readonly log: { readonly rev: number; readonly change: Change }[] = []
  compacted = 0
  rev: number
  readonly firstRev: number

  constructor(rev: Rev) {
    this.rev = this.firstRev = Number(rev)
  }

  put(key: string, value: Json): Entry {
    const rev = ++this.rev
    const text = JSON.stringify(value)
    const entry = { key, value: JSON.parse(text), rev: String(rev), bytes: Buffer.byteLength(text) }
    const previous = this.entries.get(key)
    this.entries.set(key, entry)
    this.log.push({ rev, change: { type: 'put', entry, ...(previous && { previous }) } })
    return entry
  }

  delete(previous: Entry): Rev {
    const rev = String(++this.rev)
    this.entries.delete(previous.key)
    this.log.push({ rev: this.rev, change: { type: 'delete', key: previous.key, rev, previous } })
    return rev
  }

  list(prefix: string, after: string, limit: number): Entry[] {
    const bytes = (key: string): Buffer => Buffer.from(key)
    return [...this.entries.values()]
      .filter(({ key }) => key.startsWith(prefix) && bytes(key).compare(bytes(after)) > 0)
      .sort((a, b) => bytes(a.key).compare(bytes(b.key)))
      .slice(0, limit)
  }

  precondition(prefix: string, { name, isRight }: Named): Precondition {
    const key = prefix + name
    return { key, rev: isRight ? (this.entries.get(key)?.rev ?? '0') : String(this.firstRev) }
  }

  /** A revision between the beginning and now. */
  revAt(point: number): number {
    return this.firstRev + Math.round((this.rev - this.firstRev) * point)
  }
}

const outcome = async (work: Promise<unknown>): Promise<unknown> =>
  work.catch((error: unknown) => (error instanceof StoreError ? error.fault : Promise.reject(error)))

/** Runs one command on both; returns the store to continue with. */
async function step(store: Store, model: Model, prefix: string, command: Command, engine: Engine): Promise<Store> {
  const key = 'name' in command ? prefix + command.name : ''
  const entry = model.entries.get(key)
  const preconditions =
    'preconditions' in command ? command.preconditions?.map((each) => model.precondition(prefix, each)) : undefined
  const moved = preconditions?.some((each) => model.entries.get(each.key)?.rev !== each.rev) ? 'Conflict' : undefined
  switch (command.do) {
    case 'create': {
      const refused = entry ? 'AlreadyExists' : moved
      const done = await outcome(store.create(key, command.value, preconditions))
      assert.deepEqual(done, refused ?? model.put(key, command.value))
      return store
    }
    case 'createAtOnce': {
      const keys = command.names.map((each) => prefix + each)
      const expected = keys.map((each) => (model.entries.has(each) ? 'AlreadyExists' : 'created'))
      const done = await Promise.all(keys.map((each) => outcome(store.create(each, command.value))))
      assert.deepEqual(
        done.map((result) => (typeof result === 'string' ? result : 'created')),
        expected,
      )
      // In the order that the store gave them.
      const made = done.filter((result) => typeof result !== 'string').map((result) => result as Entry)
      for (const one of made.sort((a, b) => compareRevs(a.rev, b.rev)))
        assert.deepEqual(one, model.put(one.key, command.value))
      return store
    }
    case 'update':
    case 'delete': {
      const expect = entry && command.isRight ? entry.rev : '0'
      const refused = !entry ? 'NotFound' : command.isRight ? moved : 'Conflict'
      const isUpdate = command.do === 'update'
      const done = await outcome(
        isUpdate ? store.update(key, command.value, expect, preconditions) : store.delete(key, expect),
      )
      assert.deepEqual(done, refused ?? (isUpdate ? model.put(key, command.value) : model.delete(entry as Entry)))
      return store
    }
    case 'get':
      assert.deepEqual(await store.get(key), entry)
      return store
    case 'list': {
      const after = prefix + command.after
      const page = await store.list(prefix, { after, limit: command.limit })
      assert.deepEqual(page, { entries: model.list(prefix, after, command.limit), rev: String(model.rev) })
      return store
    }
    case 'watch': {
      const from = model.revAt(command.from)
      const changes = model.log.filter(({ rev }) => rev > from).map(({ change }) => change)
      const seen = await outcome(collectTo(store, prefix, String(from), String(model.rev)))
      assert.deepEqual(seen, from < model.compacted ? 'Compacted' : changes)
      return store
    }
    case 'compact':
      model.compacted = Math.max(model.compacted, model.revAt(command.to))
      await store.compact(String(model.revAt(command.to)))
      return store
    case 'reopen':
      return engine.reopen ? engine.reopen(store) : store
  }
}

async function runSequence(store: Store, prefix: string, commands: readonly Command[], engine: Engine): Promise<Store> {
  let current = store
  const model = new Model((await store.list(prefix)).rev)
  for (const command of commands) current = await step(current, model, prefix, command, engine)
  assert.deepEqual((await current.list(prefix)).entries, model.list(prefix, '', 1_000))
  const past = await outcome(
    collectTo(current, prefix, String(Math.max(model.firstRev, model.compacted)), String(model.rev)),
  )
  const kept = model.log.filter(({ rev }) => rev > model.compacted).map(({ change }) => change)
  assert.deepEqual(past, kept)
  assert.ok(kept.every((change) => changeKey(change).startsWith(prefix)))
  return current
}

export function modelContract(engine: Engine): void {
  let sequences = 0
  const check = async (runs: number, commands: fc.Arbitrary<Command>[], maxLength: number): Promise<void> => {
    let store = await engine.open()
    const arbitrary = fc.array(fc.oneof(...commands), { minLength: 1, maxLength })
    await fc.assert(
      fc.asyncProperty(arbitrary, async (sequence) => {
        store = await runSequence(store, `/model/${++sequences}/`, sequence, engine)
      }),
      // As many as a busy machine has the time for: each is a test by itself.
      { numRuns: runs, interruptAfterTimeLimit: 60_000 },
    )
    await store.close()
  }

  const runs = isAllTested ? 1_000 : 100
  test(`${engine.name}: ${runs} random sequences behave like the model`, () => check(runs, usual, 25))
  test(`${engine.name}: random sequences with compaction, and reopening where the engine keeps data`, () =>
    check(isAllTested ? 60 : 20, [...usual, compaction, reopening], 12))
}
