// When a server counts as stale, and when not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../platform/log.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { ServerRefused, ServerUnreachable } from './server-calls.ts'
import { StalenessGuard } from './staleness-guard.ts'

interface Told {
  readonly rev: string
  readonly isAway: boolean
  readonly changes?: readonly unknown[]
}

const other = { id: 'other', internalUrl: 'https://other.example.com' } as ServerRecord

function watched({ others = [other] as readonly ServerRecord[] } = {}) {
  const world = {
    nowMs: 10_000,
    currentMs: 10_000,
    isCurrent: true,
    answer: async (): Promise<Told> => ({ rev: '99', isAway: true, changes: [] }),
    told: '99',
    learnt: [] as unknown[],
    current: undefined as (() => Promise<void>) | undefined,
  }
  const staleness = new StalenessGuard({
    servers: {
      others: () => others,
      get currentMs() {
        return world.currentMs
      },
    },
    horizon: {
      current: () => world.current?.() ?? (world.isCurrent ? Promise.resolve() : Promise.reject(new Error('blind'))),
      shown: async () => undefined,
    },
    exchange: {
      deliveredRev: () => world.told,
      changesAfter: () => undefined,
      learn: (_after, { changes, rev }) => {
        world.learnt.push(...changes)
        world.told = rev
      },
    },
    calls: { call: (() => world.answer()) as never },
    log: silentLog,
    nowMs: () => world.nowMs,
  })
  /** Advances the clock in half seconds, with a check after each. */
  const pass = async (seconds: number): Promise<void> => {
    for (let half = 0; half < 2 * seconds; half++) {
      world.nowMs += 500
      await staleness.look()
    }
  }
  return { world, staleness, pass }
}

test('a server whose writes come back sees', async () => {
  const { world, staleness, pass } = watched()
  world.isCurrent = false
  world.answer = async () => ({ rev: '100', isAway: false })
  for (let second = 0; second < 10; second++) {
    world.currentMs = world.nowMs
    await pass(1)
  }
  assert.equal(staleness.isStale, false)
})

test('one that does not, while another is further, answers nothing within five seconds, until it sees again', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  world.isCurrent = false
  world.answer = async () => ({ rev: '100', isAway: false })
  const { lost } = staleness
  await pass(2.5)
  assert.equal(staleness.isStale, true)
  assert.ok(lost.aborted)
  await pass(60)
  assert.equal(staleness.isStale, true)
  world.isCurrent = true
  await pass(0.5)
  assert.equal(staleness.isStale, false)
  assert.equal(staleness.lost.aborted, false)
})

test('where nobody sees more, all go on', async () => {
  for (const answer of [
    { rev: '99', isAway: true, changes: [] },
    { rev: '99', isAway: false },
    { rev: '98', isAway: true },
  ]) {
    const { world, staleness, pass } = watched()
    await pass(1)
    world.isCurrent = false
    world.answer = async () => answer
    await pass(60)
    assert.equal(staleness.isStale, false, JSON.stringify(answer))
  }
  const { world, staleness, pass } = watched({ others: [] })
  world.isCurrent = false
  await pass(60)
  assert.equal(staleness.isStale, false)
})

test('a server that goes on without the store says how old its answers are, until the store answers', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  assert.equal(staleness.readAgeSeconds, undefined)
  world.isCurrent = false
  await pass(4)
  assert.equal(staleness.readAgeSeconds, 5)
  // Data does not get newer while nothing changes.
  world.nowMs += 10_000
  await pass(5)
  assert.equal(staleness.readAgeSeconds, 20)
  world.isCurrent = true
  await pass(0.5)
  assert.equal(staleness.readAgeSeconds, undefined)
})

test('one that cannot be asked may see more', async () => {
  for (const error of [new ServerUnreachable('gone'), new ServerRefused(401, 'other.example.com')]) {
    const { world, staleness, pass } = watched()
    await pass(1)
    world.isCurrent = false
    world.answer = () => Promise.reject(error)
    await pass(3)
    assert.equal(staleness.isStale, true, error.message)
    // Now the server reports its failure.
    world.answer = async () => ({ rev: '99', isAway: true, changes: [] })
    await pass(0.5)
    assert.equal(staleness.isStale, false)
  }
})

test('where the store is away, a server learns what another was handed, and reads on; one that does not remember is ahead', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  world.isCurrent = false
  world.answer = async () => ({ rev: '101', isAway: true, changes: ['100', '101'] })
  await pass(60)
  assert.deepEqual([staleness.isStale, world.told, world.learnt], [false, '101', ['100', '101']])
  world.answer = async () => ({ rev: '102', isAway: true })
  await pass(1)
  assert.equal(staleness.isStale, true)
})

test('while another server has not said whether it knows more, nothing is decided, and what has waited five seconds waits on', async () => {
  for (const last of [undefined, new ServerUnreachable('silent')]) {
    const { world, staleness, pass } = watched()
    await pass(1)
    world.isCurrent = false
    const slow = Promise.withResolvers<Told>()
    world.answer = () => slow.promise
    world.nowMs += 3_000
    const looking = staleness.look()
    assert.equal(staleness.undecided, undefined, 'what was all there is three seconds ago')
    world.nowMs += 6_000
    const { undecided } = staleness
    assert.ok(undecided)
    assert.equal(staleness.isStale, false)
    if (last) slow.reject(last)
    else slow.resolve({ rev: '99', isAway: true, changes: [] })
    await undecided
    await looking
    assert.deepEqual([staleness.isStale, staleness.readAgeSeconds], [last !== undefined, 10])
  }
})

test('a process that stood still answers nothing before it has looked', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  world.nowMs += 60_000
  const { undecided } = staleness
  assert.ok(undecided)
  await staleness.look()
  await undecided
  assert.equal(staleness.isStale, false)
  assert.equal(staleness.undecided, undefined)
})

test('a store that answers late, while another server says nothing, is enough', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  const late = Promise.withResolvers<void>()
  world.current = () => late.promise
  world.answer = () => new Promise(() => undefined)
  world.nowMs += 3_000
  const looking = staleness.look()
  setTimeout(late.resolve, 1_700)
  await looking
  assert.deepEqual([staleness.isStale, staleness.readAgeSeconds], [false, undefined])
})
