// Placements are serialised, happen on one server, and depend on what was seen.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { nodeRecord, placedVm, vmRecord } from '../../../bench/records.ts'
import { allEnded } from '../../platform/parallel.ts'
import { openMemory } from '../../store/memory.ts'
import { type Collections, openCollections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { type Entry, type Store, StoreError } from '../../store/store.ts'
import { Placements } from './placements.ts'

const presence = { isOpen: () => true, subscribe: () => () => undefined }
const node = nodeRecord(1, 2, 'key')
let store: Store
let collections: Collections

beforeEach(async () => {
  store = openMemory()
  collections = await openCollections(store)
  await collections.nodes.create('', node.name, node)
})
afterEach(() => collections[Symbol.asyncDispose]())

const leader = (term: number, records = collections): Placements =>
  new Placements({ collections: records, store }, presence, term)
const vm = (index: number): Promise<Entry<VmRecord>> =>
  collections.vms.create('svc-default', `vm-${index}`, vmRecord(index))
const place = (record: VmRecord): VmRecord => placedVm(Number(record.uid.slice(4)), node, 1)
const looked = (placements: Placements) => placements.rooms.named(node.name)?.entry ?? assert.fail()

/** Views see writes 50 ms later. */
const lateWatch: Store['watch'] = async function* (...watched) {
  for await (const batch of store.watch(...watched)) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    yield batch
  }
}

describe('placements', () => {
  it('a placement of an earlier leader is refused once a later one has begun', async () => {
    const [first, second] = [await vm(1), await vm(2)]
    const [old, next] = [leader(1), leader(2)]
    const results: unknown[] = []
    await old.exclusively(async () => {
      results.push((await old.changeVm(first, looked(old), place)) !== 'moved')
      await next.exclusively(async () => void results.push(next.rooms.named(node.name)?.vms))
      results.push(await old.changeVm(second, looked(old), place))
    })
    await old.exclusively(async () => void results.push('worked'))
    assert.deepEqual(results, [true, 1, 'moved'])
    assert.equal(collections.vms.get('svc-default', 'vm-2')?.value.place, undefined)
  })

  it('a placement on a node that has changed is refused, and the next look sees the change', async () => {
    const waiting = await vm(1)
    const placements = leader(0)
    await placements.exclusively(async () => {
      const entry = looked(placements)
      await collections.nodes.update(entry, { ...entry.value, isCordoned: true })
      assert.equal(await placements.changeVm(waiting, entry, place), 'moved')
    })
    await placements.exclusively(async () => {
      assert.equal(placements.rooms.named(node.name)?.unfit?.cause, 'cordoned')
    })
  })

  it('a VM that has changed is placed with its changes, and a deleted one is not', async () => {
    const [changed, gone] = [await vm(1), await vm(2)]
    await collections.vms.update(changed, { ...changed.value, owner: 'other' })
    await collections.vms.delete(gone)
    const placements = leader(0)
    await placements.exclusively(async () => {
      const placed = await placements.changeVm(changed, looked(placements), (record) => ({
        ...place(record),
        owner: record.owner,
      }))
      assert.equal(placed !== 'moved' && placed?.value.owner, 'other')
      assert.equal(await placements.changeVm(gone, looked(placements), place), undefined)
    })
  })

  it('runs are serialised, and a failed one begins a new term', async () => {
    const placements = leader(0)
    const order: string[] = []
    const run = (name: string, failure?: Error) =>
      placements.exclusively(async () => {
        order.push(`${name} begins`)
        await new Promise(setImmediate)
        order.push(`${name} ends`)
        if (failure) throw failure
      })
    const failing = run('b', new StoreError('Unknown', 'no answer'))
    await Promise.all([run('c'), assert.rejects(failing, /no answer/)])
    assert.deepEqual(order, ['b begins', 'b ends', 'c begins', 'c ends'])
    assert.deepEqual((await store.get('/leadership/placements'))?.value, { term: 0, count: 2 })
  })

  it('a placement without an answer is counted by the next run, even if its view is late', async () => {
    const waiting = await vm(1)
    await using late = await openCollections({ ...store, watch: lateWatch })
    const placements = leader(0, late)
    const seen: unknown[] = []
    const look = async (): Promise<void> => void seen.push(placements.rooms.named(node.name)?.vms)
    await placements.exclusively(async () => {
      await store.update(waiting.key, place(waiting.value) as never, waiting.rev)
    })
    await placements.exclusively(look)
    placements.unsure()
    await placements.exclusively(look)
    assert.deepEqual(seen, [0, 1])
  })

  it('a failed run ends after all of its writes, and none of them happens after the next look', async () => {
    const placements = leader(0)
    const [first, second] = [await vm(1), await vm(2)]
    const order: string[] = []
    const failing = placements.exclusively(() =>
      allEnded([
        Promise.reject(new Error('one write failed')),
        new Promise((resolve) => setTimeout(resolve, 20)).then(async () => {
          await placements.changeVm(first, looked(placements), place)
          order.push('late write')
        }),
      ]),
    )
    const next = placements.exclusively(async () => {
      order.push(`next sees ${placements.rooms.named(node.name)?.vms}`)
      await placements.changeVm(second, looked(placements), place)
    })
    await assert.rejects(failing, /one write failed/)
    await next
    assert.deepEqual(order, ['late write', 'next sees 1'])
  })
})
