// Long logs are cut while another process writes to them.
import assert from 'node:assert/strict'
import { closeSync, writeSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { openLog, trimLog } from './logs.ts'

describe('logs of a VM', () => {
  it('the logs of a VM keep their last whole lines when they are cut', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-logs-'))
    const file = path.join(folder, 'console.log')
    await trimLog(file, { largestBytes: 1, keptBytes: 1 })
    await fs.writeFile(file, 'of an earlier run\n')
    const writer = openLog(file)
    const limit = { largestBytes: 1_000, keptBytes: 100 }
    for (let line = 0; line < 99; line++) writeSync(writer, `line ${line}\n`)
    const before = await fs.readFile(file, 'utf8')
    await trimLog(file, limit)
    assert.equal(await fs.readFile(file, 'utf8'), before, 'not beyond its limit')
    for (let line = 99; line < 200; line++) writeSync(writer, `line ${line}\n`)
    await trimLog(file, limit)
    writeSync(writer, 'after the cut\n')
    closeSync(writer)
    const lines = (await fs.readFile(file, 'utf8')).split('\n')
    assert.deepEqual(lines.slice(-3), ['line 199', 'after the cut', ''])
    assert.match(lines[0] ?? '', /^line 1\d\d$/)
    assert.ok(lines.length > 10 && lines.length < 15, `${lines.length} lines`)
    await fs.writeFile(file, 'x'.repeat(2_000))
    await trimLog(file, limit)
    assert.equal(await fs.readFile(file, 'utf8'), 'x'.repeat(100), 'where there are no lines')
    await fs.rm(folder, { recursive: true })
  })
})
