// Bodies of answers, in pieces or whole.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { bodyOf, type Reader } from './pieces.ts'

const piece = 'x'.repeat(900_000)
function reader() {
  const raw = Object.assign(new EventEmitter(), { destroyed: false })
  return { raw, request: { method: 'GET' } } as unknown as Reader & { raw: EventEmitter & { destroyed: boolean } }
}

describe('the body of an answer', () => {
  it('is whole if it is short, and a stream if short ones that nobody reads fill the memory for them', async () => {
    const readers = Array.from({ length: 60 }, reader)
    const bodies = []
    for (const each of readers) bodies.push(await bodyOf(each, [piece]))
    const whole = bodies.filter((body) => body instanceof Buffer)
    assert.ok(whole.length > 30 && whole.length < 40, `${whole.length}`)
    const last = bodies.at(-1)
    assert.ok(last instanceof Readable)
    assert.equal(await text(last), piece)
    for (const { raw } of readers) raw.emit('close')
    for (let count = 0; count < 30; count++) {
      const next = reader()
      assert.ok((await bodyOf(next, [piece])) instanceof Buffer)
      next.raw.emit('close')
    }
  })

  it('is not made for a client that has left', async () => {
    const gone = reader()
    gone.raw.destroyed = true
    await assert.rejects(bodyOf(gone, [piece]), /The client has left/)
  })
})
