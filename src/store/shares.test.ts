// Sums of stored records, and the refusals of requests that exceed a limit.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Collection, scopeOf } from './collection.ts'
import { openMemory } from './memory.ts'
import { rehearse } from './rehearsal.ts'
import { type OverLimit, Shares, withLimits } from './shares.ts'
import { View } from './view.ts'

interface Note {
  readonly text: string
}

class Refused extends Error {
  readonly excess: OverLimit

  constructor(excess: OverLimit) {
    super(excess.exceeded)
    this.excess = excess
  }
}

async function open(limits: { records: number; bytes: number }) {
  const store = openMemory()
  const view = new View<Note>(store, '/notes/')
  const shares = new Shares<Note>('notes', view, (key) => scopeOf('/notes/', key))
  const notes = new Collection<Note>(store, view, '/notes/', undefined, shares)
  await view.synced()
  const within = <T>(work: () => Promise<T>): Promise<T> =>
    withLimits({ limitsOf: () => limits, refusal: (excess) => new Refused(excess) }, work)
  return { store, view, shares, notes, within }
}

const text = (length: number): Note => ({ text: 'x'.repeat(length - '{"text":""}'.length) })
const refused = (exceeded: string) => (error: unknown) => error instanceof Refused && error.excess.exceeded === exceeded

describe('what is stored', () => {
  it('what is stored is counted by scope with every create, change and deletion, and from an existing store', async () => {
    const { store, shares, notes } = await open({ records: 0, bytes: 0 })
    const one = await notes.create('a', 'one', text(100))
    await notes.create('a', 'two', { text: 'ü' })
    await notes.create('b', 'one', text(50))
    assert.deepEqual(shares.of('a'), { records: 2, bytes: 113 })
    await notes.delete(await notes.update(one, text(40)))
    assert.deepEqual([shares.of('a'), shares.of('b')], [{ records: 1, bytes: 13 }, { records: 1, bytes: 50 }]) // biome-ignore format: one line
    const again = new View<Note>(store, '/notes/')
    const counted = new Shares<Note>('notes', again, (key) => scopeOf('/notes/', key))
    await again.synced()
    assert.deepEqual([counted.of('a'), counted.of('b')], [shares.of('a'), shares.of('b')])
  })

  it('what is stored is limited in number for requests only', async () => {
    const { notes, within, shares } = await open({ records: 2, bytes: 10_000_000 })
    await within(async () => {
      await notes.create('a', 'one', text(100))
      await notes.create('a', 'two', text(100))
      await assert.rejects(notes.create('a', 'three', text(100)), refused('records'))
      await assert.rejects(
        rehearse(() => notes.create('a', 'three', text(100))),
        refused('records'),
      )
      await notes.create('b', 'one', text(100))
      await assert.rejects(notes.create('a', 'one', text(100)), { fault: 'AlreadyExists' })
    })
    await notes.create('a', 'three', text(100))
    assert.deepEqual(shares.of('a'), { records: 3, bytes: 300 })
  })

  it('what is stored is limited in bytes; what shrinks or is deleted is never refused', async () => {
    const { notes, within } = await open({ records: 100, bytes: 1_000 })
    await within(async () => {
      await notes.create('a', 'one', text(600))
      await assert.rejects(notes.create('a', 'two', text(401)), refused('bytes'))
      const two = await notes.create('a', 'two', text(400))
      // An eighth more is left for changes.
      const grown = await notes.update(two, text(525))
      await assert.rejects(notes.update(grown, text(526)), refused('bytes'))
      const smaller = await notes.update(grown, text(500))
      await assert.rejects(notes.create('a', 'three', text(20)), refused('bytes'))
      await notes.delete(smaller)
      await notes.create('a', 'three', text(20))
    })
  })

  it('what is stored is limited also while other records are being written', async () => {
    const { store, shares, view, within } = await open({ records: 3, bytes: 1_000 })
    const slow = {
      ...store,
      create: async (...args: Parameters<typeof store.create>) => {
        await turn()
        return store.create(...args)
      },
    }
    const notes = new Collection<Note>(slow, view, '/notes/', undefined, shares)
    const make = (names: readonly string[], length: number) =>
      within(() => Promise.allSettled(names.map((name) => notes.create('a', name, text(length)))))
    const outcomes = async (names: readonly string[], length: number) =>
      (await make(names, length)).map(({ status }) => status === 'fulfilled')
    assert.deepEqual(await outcomes(['1', '2', '3', '4', '5'], 20), [true, true, true, false, false])
    for (const entry of notes.list('a')) await notes.delete(entry)
    assert.deepEqual(await outcomes(['1', '2', '3'], 400), [true, true, false])
    // Refused ones and those that exist count no longer.
    assert.deepEqual(await outcomes(['2', '3'], 200), [false, true])
    assert.deepEqual(shares.of('a'), { records: 3, bytes: 1_000 })
  })

  it('what is stored after a request has ended is not refused, although the request started it', async () => {
    const { notes, within, shares } = await open({ records: 0, bytes: 0 })
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    let later: Promise<unknown> = Promise.resolve()
    await within(async () => {
      later = ended.then(() => notes.create('a', 'one', text(100)))
    })
    resolve()
    await later
    assert.equal(shares.of('a').records, 1)
  })
})
