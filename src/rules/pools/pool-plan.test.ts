// Plans of pools: starting, rotating and removing slots.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Demand } from '../placement.ts'
import {
  bootMs,
  type PlannedPool,
  type PoolNode,
  type PoolSituation,
  type PoolSlot,
  planPools,
  poolRestMs,
} from './pool-plan.ts'

const demand: Demand = {
  architecture: 'amd64',
  image: 'tiny',
  cpu: 1,
  memoryMiB: 512,
  gpuPassthrough: false,
  tagRequired: false,
  scheduler: 'default',
  vncConsole: false,
  reservedPorts: [],
}
const nowMs = 1_000_000_000

function node(name: string, freeCpu: number, more: Partial<PoolNode> = {}): PoolNode {
  const made = {
    name,
    isKnown: true,
    architecture: 'amd64' as const,
    tags: [],
    cpu: 8,
    memoryMiB: 65_536,
    gpus: 0,
    images: [],
    freeCpu,
    freeMemoryMiB: 60_000,
    freeGpus: 0,
    vms: 0,
    macosVms: 0,
    isPortTaken: () => false,
    takesSlots: true,
    take: ({ cpu }: { readonly cpu: number }) => {
      made.freeCpu -= cpu
    },
    ...more,
  }
  return made
}
const pool = (more: Partial<PlannedPool> = {}): PlannedPool => ({
  name: 'ios',
  uid: 'p',
  minIdle: 2,
  maxIdle: 4,
  maxAgeSeconds: 3_600,
  isPaused: false,
  isDrained: false,
  rotation: 0,
  state: 'running',
  template: { key: 'k', demand },
  ...more,
})
const slot = (uid: string, more: Partial<PoolSlot> = {}): PoolSlot => ({
  uid,
  node: 'a',
  poolUid: 'p',
  key: 'k',
  rotation: 0,
  createdMs: nowMs - 1_000,
  isReady: true,
  isLeaving: false,
  state: 'running',
  hasCommand: false,
  cpu: 1,
  memoryMiB: 512,
  gpus: 0,
  ...more,
})
const plan = (more: Partial<PoolSituation>) =>
  planPools({
    namespace: 'svc-default',
    nowMs,
    pools: [pool()],
    slots: [],
    nodes: [node('a', 8)],
    waiting: [],
    ...more,
  })
const left = (more: Partial<PoolSituation>): string[] => plan(more).leaves.map(({ uid }) => uid)

describe('filling a pool', () => {
  it('a pool is filled up to its minimum', () => {
    assert.equal(plan({}).starts.length, 2)
    assert.equal(plan({ slots: [slot('1'), slot('2', { isReady: false })] }).starts.length, 0)
    assert.deepEqual(plan({ slots: [slot('1'), slot('2', { isReady: false })] }).statuses.get('p'), {
      ready: 1,
      starting: 1,
    })
  })

  it('the number of concurrent boots per node is limited', () => {
    assert.equal(plan({ pools: [pool({ minIdle: 8, maxIdle: 8 })] }).starts.length, 4)
    assert.equal(
      plan({ pools: [pool({ minIdle: 8, maxIdle: 8 })], nodes: [node('a', 8), node('b', 8)] }).starts.length,
      8,
    )
  })

  it('a pool that cannot be filled has the reason in its status', () => {
    const reason = (more: Partial<PoolSituation>) => plan(more).statuses.get('p')?.reason ?? ''
    assert.match(reason({ nodes: [node('a', 0)] }), /core/)
    assert.match(reason({ nodes: [node('a', 8, { takesSlots: false })] }), /No node of svc-default can keep warm VMs/)
    assert.match(reason({ pools: [pool({ isPaused: true })] }), /paused/)
    assert.match(reason({ pools: [pool({ template: { problem: 'Image x is gone' } })] }), /Image x is gone/)
    assert.match(reason({ pools: [pool({ rest: { untilMs: nowMs + 1, problem: 'no disk' } })] }), /no disk/)
  })

  it('a pool rests longer with each failure, and no longer than five minutes', () => {
    assert.deepEqual([1, 2, 3, 20].map(poolRestMs), [5_000, 10_000, 20_000, 300_000])
    const rest = { untilMs: nowMs + 5_000, problem: '' }
    assert.equal(plan({ pools: [pool({ rest })] }).againMs, nowMs + 5_000)
  })
})

describe('slots that go', () => {
  it('slots of deleted pools and surplus slots are removed at once', () => {
    assert.deepEqual(left({ pools: [], slots: [slot('1'), slot('2')] }), ['1', '2'])
    const slots = [slot('old', { createdMs: nowMs - 9_000 }), slot('new'), slot('boots', { isReady: false })]
    assert.deepEqual(left({ pools: [pool({ minIdle: 1, maxIdle: 1 })], slots }).toSorted(), ['boots', 'new'])
  })

  const useless: readonly (readonly [string, Partial<PoolSlot>, Partial<PoolNode>])[] = [
    ['that are too old', { createdMs: nowMs - 3_601_000 }, {}],
    ['of another image', { key: 'other' }, {}],
    ['of before a rotation', { rotation: -1 }, {}],
    ['of a cordoned node', {}, { unfit: { cause: 'cordoned' } }],
  ]
  for (const [what, change, state] of useless)
    it(`slots ${what} are rotated, a quarter of the pool at a time`, () => {
      const pools = [pool({ minIdle: 8, maxIdle: 8 })]
      const slots = Array.from({ length: 8 }, (_, index) => slot(String(index), change))
      const nodes = [node('a', 8, state)]
      assert.equal(left({ pools, slots, nodes }).length, 2)
      const going = slots.map((each, index) => ({ ...each, isLeaving: index < 2 }))
      assert.equal(left({ pools, slots: going, nodes }).length, 0)
    })

  it('slots of an earlier rotation count as ready until they are removed, those of another image do not', () => {
    const ready = (change: Partial<PoolSlot>) =>
      plan({
        pools: [pool({ minIdle: 8, maxIdle: 8 })],
        slots: ['1', '2', '3'].map((uid) => slot(uid, change)),
      }).statuses.get('p')?.ready
    assert.equal(ready({ rotation: -1 }), 1)
    assert.equal(ready({ key: 'other' }), 0)
  })

  it('slots of an earlier rotation are kept while their pool is paused, and replaced when it is resumed', () => {
    const slots = [slot('1', { rotation: -1 }), slot('2', { state: 'memory' })]
    const paused = { pools: [pool({ isPaused: true })], slots }
    assert.deepEqual(left(paused), [])
    assert.equal(plan(paused).statuses.get('p')?.ready, 2)
    assert.deepEqual(left({ pools: [pool()], slots }), ['1'])
  })

  it('all slots of a drained pool are removed at once, and none starts', () => {
    const found = plan({ pools: [pool({ isDrained: true, isPaused: true })], slots: [slot('1'), slot('2')] })
    assert.deepEqual(
      found.leaves.map(({ end }) => end.reason),
      ['Drained', 'Drained'],
    )
    assert.deepEqual(found.starts, [])
    assert.deepEqual(found.statuses.get('p'), { ready: 0, starting: 0, reason: 'The pool is drained' })
  })

  it('a pool is planned again when its schedule changes', () => {
    const found = plan({ pools: [pool({ minIdle: 0, minIdleUntilMs: nowMs + 700 })] })
    assert.equal(found.againMs, nowMs + 700)
    assert.deepEqual(found.statuses.get('p'), { ready: 0, starting: 0, minIdle: 0 })
  })

  it('a slot whose guest never answers is removed', () => {
    assert.deepEqual(left({ slots: [slot('1', { isReady: false, createdMs: nowMs - bootMs - 1 })] }), ['1'])
  })

  it('slots of a lost node do not count, and are kept', () => {
    const away = node('a', 8, { unfit: { cause: 'disconnected' } })
    const found = plan({ slots: [slot('1'), slot('2')], nodes: [away, node('b', 8)] })
    assert.deepEqual(found.leaves, [])
    assert.deepEqual(
      found.starts.map(({ node: at }) => at),
      ['b', 'b'],
    )
  })

  it('a rotation does not wait for slots of a lost node, and does not remove them all', () => {
    const nodes = [node('a', 8), node('b', 8, { unfit: { cause: 'disconnected' } })]
    const stuck = [slot('going', { node: 'b', isLeaving: true }), slot('boots', { node: 'b', isReady: false })]
    const slots = ['1', '2'].map((uid) => slot(uid, { key: 'other' }))
    assert.deepEqual(left({ slots: [...stuck, ...slots], nodes }), ['1'])
    const away = ['3', '4'].map((uid) => slot(uid, { node: 'b', rotation: -1, createdMs: nowMs - 9_000 }))
    assert.deepEqual(left({ slots: [...away, ...slots], nodes }), ['1'])
  })
})

describe('VMs that wait for the place of slots', () => {
  const large: Demand = { ...demand, cpu: 3 }

  it('only as many slots as a VM needs are evicted, the newest first, and no slot starts there', () => {
    const slots = [slot('1', { createdMs: 1 }), slot('2', { createdMs: 2 }), slot('3', { createdMs: 3 })]
    const pools = [pool({ minIdle: 3, maxAgeSeconds: nowMs })]
    const found = plan({ pools, slots, nodes: [node('a', 1)], waiting: [{ demand: large }] })
    assert.deepEqual(found.leaves.map(({ uid }) => uid).toSorted(), ['2', '3'])
    assert.deepEqual(found.starts, [])
  })

  it('slots that are being removed are counted once, and two VMs get two places', () => {
    const going = [slot('1', { isLeaving: true }), slot('2')]
    assert.deepEqual(left({ slots: going, nodes: [node('a', 2)], waiting: [{ demand: large }] }), [])
    assert.deepEqual(left({ slots: going, nodes: [node('a', 0)], waiting: [{ demand }, { demand }] }), ['2'])
  })

  it('a VM that can take a slot evicts none, unless it may not run on that node', () => {
    const slots = [slot('1'), slot('2')]
    const nodes = [node('a', 0)]
    const matching = { demand, key: 'k' }
    assert.deepEqual(left({ slots, nodes, waiting: [matching, matching] }), [])
    assert.deepEqual(left({ slots, nodes, waiting: [matching, { demand }] }), ['2'])
    const full = node('b', 0, { name: 'b' })
    const elsewhere = { demand: { ...demand, node: 'b' }, key: 'k' }
    const both = [...slots, slot('3', { node: 'b', key: 'other' })]
    const pools = [pool({ minIdle: 3, maxIdle: 4 }), pool({ uid: 'q', name: 'q', template: { key: 'other', demand } })]
    assert.deepEqual(
      left({
        pools,
        slots: both.map((each) => (each.node === 'b' ? { ...each, poolUid: 'q' } : each)),
        nodes: [...nodes, full],
        waiting: [elsewhere],
      }),
      ['3'],
    )
  })

  it('a VM that would not fit anyway evicts no slot', () => {
    assert.deepEqual(
      left({ slots: [slot('1'), slot('2')], nodes: [node('a', 0)], waiting: [{ demand: { ...demand, cpu: 8 } }] }),
      [],
    )
  })

  it('a VM that waits for another node does not keep a pool from filling', () => {
    assert.equal(plan({ waiting: [{ demand: { ...demand, tag: 'x', tagRequired: true } }] }).starts.length, 2)
  })
})
