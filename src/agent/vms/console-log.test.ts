// Reading the end of a console log, and following it.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { followConsoleLog } from './console-log.ts'

describe('console log', () => {
  let folder: string
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-log-'))
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  const file = async (name: string, text: string): Promise<string> => {
    const place = path.join(folder, name)
    await fs.writeFile(place, text)
    return place
  }
  const all = async (place: string, tail?: number): Promise<string> => {
    const chunks: Uint8Array[] = []
    const { signal } = new AbortController()
    for await (const chunk of followConsoleLog(place, { follow: false, tail, signal })) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  }

  it('a console log is read completely, or its last lines, with or without a newline at the end', async () => {
    const ended = await file('ended', 'one\ntwo\nthree\n')
    const open = await file('open', 'one\ntwo\nthree')
    assert.equal(await all(ended), 'one\ntwo\nthree\n')
    assert.equal(await all(ended, 1), 'three\n')
    assert.equal(await all(ended, 2), 'two\nthree\n')
    assert.equal(await all(ended, 9), 'one\ntwo\nthree\n')
    assert.equal(await all(ended, 0), '')
    assert.equal(await all(open, 1), 'three')
    assert.equal(await all(path.join(folder, 'missing')), '')
  })

  it('a console log is read from the end when it is long', async () => {
    const lines = Array.from({ length: 50_000 }, (_, index) => `line ${index} of a log that is longer than one chunk`)
    const long = await file('long', `${lines.join('\n')}\n`)
    assert.equal(await all(long, 3_000), `${lines.slice(-3_000).join('\n')}\n`)
  })

  it('a console log is followed as it grows, and after it was truncated', async () => {
    const place = await file('growing', 'old\n')
    const ending = new AbortController()
    const stream = followConsoleLog(place, { follow: true, tail: 1, signal: ending.signal })
    const next = async (): Promise<string> => Buffer.from((await stream.next()).value ?? []).toString('utf8')
    assert.equal(await next(), 'old\n')
    const more = next()
    await fs.appendFile(place, 'new\n')
    assert.equal(await more, 'new\n')
    await fs.writeFile(place, 'x\n')
    assert.equal(await next(), 'x\n')
    const last = next()
    ending.abort()
    assert.equal(await last, '')
  })
})
