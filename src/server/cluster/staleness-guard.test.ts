// When a server takes itself for cut off, and when it does not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../platform/log.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { ServerRefused, ServerUnreachable } from './server-calls.ts'
import { StalenessGuard } from './staleness-guard.ts'

const other = { id: 'other', internalUrl: 'https://other.example.com' } as ServerRecord

function watched({ others = [other] as readonly ServerRecord[] } = {}) {
  const world = {
    nowMs: 10_000,
    currentMs: 10_000,
    isCurrent: true,
    answer: async (): Promise<{ rev?: string }> => ({}),
  }
  const staleness = new StalenessGuard({
    servers: {
      others: () => others,
      get currentMs() {
        return world.currentMs
      },
    },
    horizon: { rev: '99', current: () => (world.isCurrent ? Promise.resolve() : Promise.reject(new Error('blind'))) },
    calls: { call: (() => world.answer()) as never },
    log: silentLog,
    nowMs: () => world.nowMs,
  })
  /** Half seconds pass, with a look after each. */
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
  world.answer = async () => ({ rev: '100' })
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
  world.answer = async () => ({ rev: '100' })
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
  for (const answer of [{}, { rev: '99' }, { rev: '98' }]) {
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
  // Standing still does not make it younger.
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
    // Now it says that it does not.
    world.answer = async () => ({})
    await pass(0.5)
    assert.equal(staleness.isStale, false)
  }
})

test('a process that stood still is given its time anew', async () => {
  const { world, staleness, pass } = watched()
  await pass(1)
  world.isCurrent = false
  world.answer = async () => ({ rev: '100' })
  for (let pause = 0; pause < 5; pause++) {
    world.nowMs += 10_000
    await pass(2)
    assert.equal(staleness.isStale, false)
  }
  await pass(2)
  assert.equal(staleness.isStale, true)
})
