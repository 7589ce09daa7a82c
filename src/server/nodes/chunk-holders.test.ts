// Which node is sent to which for a chunk: one node fetches it, nodes never wait in a circle, and the load is spread.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createChunkHolders } from './chunk-holders.ts'

const clock = { nowMs: 0, now: () => new Date(clock.nowMs) }
const anybody = { without: new Set<string>(), isUsable: () => true }

describe('nodes that fetch an image at the same time', () => {
  it('nodes that fetch an image at the same time are sent to nodes that asked before them, three to each', () => {
    const holders = createChunkHolders(clock)
    const sent = new Map<string, number>()
    for (let index = 0; index < 40; index++) {
      const from = holders.assign({ content: 'image', chunk: 'a', node: `n${index}` }, anybody)
      assert.equal(from === undefined, index === 0)
      if (from === undefined) continue
      assert.ok(Number(from.slice(1)) < index)
      sent.set(from, (sent.get(from) ?? 0) + 1)
    }
    assert.deepEqual([...new Set(sent.values())], [3])
    assert.equal(holders.assign({ content: 'image', chunk: 'b', node: 'n7' }, anybody), undefined)
  })

  it('nodes that fetch an image at the same time never wait for each other in a circle, also after failures', () => {
    const step = fc.record({ node: fc.nat(7), without: fc.array(fc.nat(7), { maxLength: 2 }), gone: fc.nat(7) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const holders = createChunkHolders(clock)
        const waitsFor = new Map<string, string | undefined>()
        for (const { node, without, gone } of steps) {
          const name = `n${node}`
          // A node does not report itself as a failed holder.
          const failed = new Set(without.map((each) => `n${each}`).filter((each) => each !== name))
          const isUsable = (other: string): boolean => other !== `n${gone}`
          const from = holders.assign({ content: 'image', chunk: 'a', node: name }, { without: failed, isUsable })
          assert.ok(from !== name && !(from !== undefined && failed.has(from)))
          waitsFor.set(name, from)
          const seen = new Set<string>()
          for (let at: string | undefined = name; at !== undefined; at = waitsFor.get(at)) {
            assert.ok(!seen.has(at), `${at} waits for itself`)
            seen.add(at)
          }
        }
      }),
    )
  })

  it('nodes that fetch an image at the same time are forgotten when no node asks for a while', () => {
    const holders = createChunkHolders(clock)
    holders.assign({ content: 'image', chunk: 'a', node: 'n1' }, anybody)
    clock.nowMs += 11 * 60_000
    holders.assign({ content: 'other', chunk: 'a', node: 'n1' }, anybody)
    assert.equal(holders.assign({ content: 'image', chunk: 'a', node: 'n2' }, anybody), undefined)
  })
})
