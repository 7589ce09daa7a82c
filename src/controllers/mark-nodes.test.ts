// When a node counts as lost: after a time without a connection, but not while nodes that were lost together still return.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nodeRecord, placedVm } from '../../bench/records.ts'
import { eventually } from '../../test/support/tools/eventually.ts'
import { silentLog } from '../platform/log.ts'
import { openMemory } from '../store/memory.ts'
import { openCollections } from '../store/records/collections.ts'
import { markNodes, SeenNodes } from './mark-nodes.ts'

const all = Array.from({ length: 10_000 }, (_, n) => `n-${n}`)
/** Passes over all nodes every five seconds; `isOpen` says which are connected at a time. */
function look(nodes: readonly string[], untilMs: number, isOpen: (node: number, nowMs: number) => boolean): SeenNodes {
  const seen = new SeenNodes(0, 40_000)
  for (let nowMs = 0; nowMs <= untilMs; nowMs += 5_000) {
    for (const [n, node] of nodes.entries()) seen.note(node, isOpen(n, nowMs), nowMs)
    seen.counted()
  }
  return seen
}
const lostIn = (seen: SeenNodes, node: string, ...times: readonly number[]): boolean[] =>
  times.map((nowMs) => seen.isLost(node, nowMs))

describe('nodes that were seen', () => {
  it('a node is lost after the timeout without a connection', () => {
    const seen = look(['a', 'b'], 30_000, (n, nowMs) => n === 1 || nowMs <= 5_000)
    assert.deepEqual(lostIn(seen, 'a', 45_000, 45_100), [false, true])
  })

  it('a node that never connects is lost after the timeout, counted from the last one that connected', () => {
    const seen = look(all, 120_000, (n, nowMs) => n < 9_000 && n * 10 <= nowMs)
    assert.deepEqual(lostIn(seen, 'n-9999', 129_000, 131_000), [false, true])
  })

  it('nodes that a network failure disconnected are not lost while they return one after the other', () => {
    const cutMs = 100_000
    const back = (n: number, nowMs: number): boolean => nowMs < cutMs || (n < 9_999 && nowMs >= cutMs + n * 10)
    const seen = look(all, 240_000, back)
    assert.deepEqual(lostIn(seen, 'n-9999', 234_000, 241_000), [false, true])
  })

  it('nodes that reconnect often do not keep a missing one from being lost', () => {
    // It disconnected alone; in every pass another node returns that disconnected at another time.
    const seen = look(all.slice(0, 50), 60_000, (n, nowMs) => (n === 0 ? nowMs <= 15_000 : (nowMs / 5_000) % 49 !== n))
    assert.deepEqual(lostIn(seen, 'n-0', 55_000, 55_100), [false, true])
  })

  it('nodes that keep joining after a start do not delay the loss of a missing one for long', () => {
    const seen = look(all.slice(0, 50), 60_000, (n, nowMs) => n > 0 && nowMs >= n * 1_000)
    assert.deepEqual(lostIn(seen, 'n-0', 41_000, 41_100), [false, true])
  })
})

it('a node that is lost was last seen when its stream was, not when it was marked; so say its VMs', async (t) => {
  await using collections = await openCollections(openMemory())
  const record = nodeRecord(1, 8, 'key')
  await collections.nodes.create('', record.name, record)
  const vm = placedVm(1, record, 0)
  await collections.vms.create(vm.namespace, vm.name, vm)
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  let looks = 0
  const presence = { isOpen: () => ++looks > 0 && nowMs === 0, subscribe: () => () => undefined }
  const clock = { now: () => new Date(Date.parse('2026-11-15T09:00:00Z') + nowMs) }
  const loop = markNodes({ collections, clock, log: silentLog }, presence)
  await eventually(() => assert.ok(looks > 0))
  nowMs = 41_000
  loop.nudge()
  const node = () => collections.nodes.get('', record.name)?.value
  await eventually(() => assert.equal(node()?.isReady, false))
  await loop.stop()
  assert.equal(node()?.lastSeenAt, '2026-11-15T09:00:00Z')
  const lost = collections.vms.get(vm.namespace, vm.name)?.value.conditions.find(({ type }) => type === 'NodeReady')
  assert.equal(lost?.message, 'Node node-1 has not responded since 2026-11-15T09:00:00Z')
  assert.equal(lost?.at, '2026-11-15T09:00:41Z')
})
