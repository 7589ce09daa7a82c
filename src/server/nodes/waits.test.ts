// Waiting for a record: conditions, timeouts and interruptions.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openMemory } from '../../store/memory.ts'
import type { Entry } from '../../store/store.ts'
import { View } from '../../store/view.ts'
import { WaitedTooLong, Waits } from './waits.ts'

async function rig() {
  const store = openMemory()
  const view = new View<number>(store, '/n/')
  await view.synced()
  const waits = new Waits(view)
  const set = async (value: number): Promise<void> => {
    const entry = await store.get('/n/a')
    const { rev } = await (entry ? store.update('/n/a', value, entry.rev) : store.create('/n/a', value))
    await view.reached(rev)
  }
  const close = async (): Promise<void> => {
    waits.stop()
    await view.close()
    await store.close()
  }
  return { waits, set, [Symbol.asyncDispose]: close }
}

const atLeast =
  (least: number) =>
  (entry: Entry<number> | undefined): number | undefined =>
    entry && entry.value >= least ? entry.value : undefined
const ms = 60_000

describe('waiting for a record', () => {
  it('each waiter for a record gets the first change that meets its condition', async () => {
    await using r = await rig()
    const waiting = [1, 2, 2, 3].map((least) => r.waits.until('/n/a', atLeast(least), { ms }))
    for (const value of [1, 2, 5]) await r.set(value)
    assert.deepEqual(await Promise.all(waiting), [1, 2, 2, 5])
    assert.equal(await r.waits.until('/n/a', atLeast(4), { ms }), 5)
  })

  it('a waiter for a record gets the error of its test', async () => {
    await using r = await rig()
    const waiting = r.waits.until('/n/a', (entry) => (entry ? assert.fail('not this one') : undefined), { ms })
    const failed = assert.rejects(waiting, /not this one/)
    await r.set(1)
    await failed
  })

  it('a waiter for a record gets an error after its timeout', async () => {
    await using r = await rig()
    await assert.rejects(r.waits.until('/n/a', atLeast(1), { ms: 5 }), WaitedTooLong)
  })

  it('a signal ends all waits that use it, and no others', async () => {
    await using r = await rig()
    const ending = new AbortController()
    const signal = () => AbortSignal.any([new AbortController().signal, ending.signal])
    const other = r.waits.until('/n/a', atLeast(1), { ms })
    const waiting = [1, 2].map((least) => r.waits.until('/n/a', atLeast(least), { ms, signal: signal() }))
    const ended = Promise.all(waiting.map((each) => assert.rejects(each, /the service ends/)))
    ending.abort(new Error('the service ends'))
    await ended
    await assert.rejects(r.waits.until('/n/a', atLeast(1), { ms, signal: signal() }), /the service ends/)
    await r.set(1)
    assert.equal(await other, 1)
  })

  it('a waiter for a record can be aborted while another continues to wait', async () => {
    await using r = await rig()
    const own = new AbortController()
    const other = r.waits.until('/n/a', atLeast(1), { ms })
    const called = assert.rejects(r.waits.until('/n/a', atLeast(1), { ms, signal: own.signal }), /never mind/)
    own.abort(new Error('never mind'))
    await called
    await r.set(1)
    assert.equal(await other, 1)
  })
})
