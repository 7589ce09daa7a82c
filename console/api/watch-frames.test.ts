// Messages of the one WebSocket: what is asked, and what comes back as the lines of an ordinary watch.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { askFor, framesOf, giveUp } from './watch-frames.ts'

describe('frames of watches', () => {
  it('ask for a list by its path, without the word that makes it a watch', () => {
    const url = '/api/v1/namespaces/svc-default/vms?watch=true&resourceVersion=42'
    const path = '/api/v1/namespaces/svc-default/vms'
    assert.deepEqual(JSON.parse(askFor(7, url)), { watch: 7, path, query: { resourceVersion: '42' } })
    assert.deepEqual(JSON.parse(giveUp(7)), { unwatch: 7 })
  })

  it('bring one change or many, and the end of a watch', () => {
    const event = { watch: 1, type: 'ADDED', object: { name: 'a' } }
    const error = { watch: 2, type: 'ERROR', object: { code: 410 } }
    const [first, second] = framesOf(JSON.stringify([event, error]))
    assert.deepEqual(JSON.parse(first?.line ?? ''), { type: 'ADDED', object: { name: 'a' } })
    assert.deepEqual([first?.watch, first?.isLast, second?.watch, second?.isLast], [1, false, 2, true])
    assert.ok(first?.line.endsWith('\n'))
    assert.equal(framesOf(JSON.stringify(event)).length, 1)
  })

  it('leave out what is none', () => {
    for (const text of ['', 'x', 'null', '[]', '[1]', '{"type":"ADDED"}']) assert.deepEqual(framesOf(text), [], text)
  })
})
