// Live lists without a network: filling, changes, refilling, and batching.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { WatchEvent } from '../../src/client/watch.ts'
import { LiveList } from './live-list.ts'

interface Item {
  readonly name: string
  readonly value: number
}
const added = (name: string, value = 0): WatchEvent<Item> => ({ type: 'ADDED', object: { name, value } })
const bookmark: WatchEvent<Item> = { type: 'BOOKMARK', object: { resourceVersion: '1' } }

/** A watch whose events the test sends one at a time. */
function rig() {
  let push: (event: WatchEvent<Item> | Error) => void = () => undefined
  const begun: (() => void)[] = []
  let count = 0
  async function* follow(): AsyncGenerator<WatchEvent<Item>> {
    const queue: (WatchEvent<Item> | Error)[] = []
    let wake: () => void = () => undefined
    push = (event) => {
      queue.push(event)
      wake()
    }
    count++
    for (const each of begun.splice(0)) each()
    for (;;) {
      const event = queue.shift()
      if (event instanceof Error) throw event
      if (event) yield event
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  }
  const work: (() => void)[] = []
  let notices = 0
  const list = new LiveList<Item>((item) => item.name, follow, {
    soon: (each) => work.push(each),
    wait: async () => undefined,
  })
  list.subscribe(() => notices++)
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    for (const each of work.splice(0)) each()
  }
  return {
    list,
    settle,
    send: async (...events: (WatchEvent<Item> | Error)[]) => {
      for (const event of events) push(event)
      await new Promise(setImmediate)
      await settle()
    },
    restarted: () => new Promise<void>((resolve) => begun.push(resolve)),
    notices: () => notices,
    count: () => count,
    names: () => list.snapshot().items.map(({ name }) => name),
  }
}

describe('live lists', () => {
  it('a live list is empty until the initial list is complete', async () => {
    const { list, send, names, notices } = rig()
    list.start()
    await send(added('a'), added('b'))
    assert.deepEqual([names(), list.snapshot().isLoaded], [[], false])
    await send(bookmark)
    assert.deepEqual([names(), list.snapshot().isLoaded, notices()], [['a', 'b'], true, 1])
    list.stop()
  })

  it('a live list follows changes, and notifies its listeners once for many of them', async () => {
    const { list, send, names, notices } = rig()
    list.start()
    await send(added('a', 1), bookmark)
    const many = Array.from({ length: 100 }, (_, index) => added(`x${index}`))
    await send(
      ...many,
      { type: 'MODIFIED', object: { name: 'a', value: 2 } },
      { type: 'DELETED', object: { name: 'x0', value: 0 } },
    )
    assert.equal(names().length, 100)
    assert.equal(list.snapshot().items[0]?.value, 2)
    assert.equal(notices(), 2)
    list.stop()
  })

  it('a live list keeps its items while it is refilled, then drops the deleted ones', async () => {
    const { list, send, names, restarted } = rig()
    list.start()
    await send(added('a'), added('b'), bookmark)
    const again = restarted()
    await send(new Error('expired'))
    await again
    assert.deepEqual(names(), ['a', 'b'])
    assert.match(String(list.snapshot().error), /expired/)
    await send(added('b'))
    assert.deepEqual(names(), ['a', 'b'])
    await send(bookmark)
    assert.deepEqual(names(), ['b'])
    assert.equal(list.snapshot().error, undefined)
    list.stop()
  })

  it('a live list returns the same snapshot until something changes', async () => {
    const { list, send } = rig()
    list.start()
    await send(added('a'), bookmark)
    assert.equal(list.snapshot(), list.snapshot())
    list.stop()
  })
})
