// Uploads against a scripted server: every byte arrives once and in order, even if connections are lost.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pieceBytes, type UploadProgress, upload } from './upload.ts'

const cut = new Error('cut')
const refused = new Error('refused')

function service(size: number, options: { there?: number; cuts?: readonly number[]; kept?: number } = {}) {
  let there = options.there ?? 0
  const cuts = new Set(options.cuts)
  const sent: [number, number][] = []
  let calls = 0
  let clock = 0
  const told: UploadProgress[] = []
  const steps = {
    begin: async () => there,
    send: async (from: number, to: number) => {
      assert.equal(from, there)
      sent.push([from, to])
      // The connection is lost after a part of the chunk has arrived.
      if (cuts.has(++calls)) {
        there = Math.min(to, from + (options.kept ?? 0))
        throw cut
      }
      there = to
      return there
    },
    finish: async () => {
      assert.equal(there, size)
      return 'image'
    },
    isRetriable: (error: unknown) => error === cut,
    wait: async () => undefined,
    nowMs: () => (clock += 1_000),
  }
  return {
    steps,
    sent,
    told,
    run: (signal = new AbortController().signal) => upload(size, steps, (each) => told.push(each), signal),
  }
}

describe('uploads', () => {
  it('an upload sends the file in chunks and reports its progress', async () => {
    const size = 2 * pieceBytes + 5
    const { run, sent, told } = service(size)
    assert.equal(await run(), 'image')
    assert.deepEqual(sent, [
      [0, pieceBytes],
      [pieceBytes, 2 * pieceBytes],
      [2 * pieceBytes, size],
    ])
    assert.equal(told.at(-1)?.phase, 'finishing')
    assert.ok((told.findLast(({ phase }) => phase === 'sending')?.bytesPerSecond ?? 0) > 0)
  })

  it('an upload resumes after a lost connection from the offset of the server', async () => {
    const { run, sent, told } = service(2 * pieceBytes, { cuts: [2], kept: 1_000 })
    assert.equal(await run(), 'image')
    assert.deepEqual(sent[2], [pieceBytes + 1_000, 2 * pieceBytes])
    assert.ok(told.some(({ phase }) => phase === 'waiting'))
  })

  it('an upload resumes one that another page started', async () => {
    const { run, sent, told } = service(pieceBytes, { there: 4_096 })
    await run()
    assert.deepEqual(sent, [[4_096, pieceBytes]])
    assert.equal(told[0]?.resumedAt, 4_096)
  })

  it('an upload ends when it is refused or aborted', async () => {
    const { steps } = service(10)
    const send = () => Promise.reject(refused)
    await assert.rejects(
      upload(10, { ...steps, send }, () => undefined, new AbortController().signal),
      refused,
    )
    const stop = new AbortController()
    const halted = { ...steps, send: () => Promise.reject(cut), wait: async () => stop.abort(new Error('stopped')) }
    await assert.rejects(
      upload(10, { ...halted, begin: async () => 0 }, () => undefined, stop.signal),
      /stopped|cut/,
    )
  })
})
