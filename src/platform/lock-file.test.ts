// The lock file excludes: between processes, after a crash, and never takes away another's.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { LockedError, withLockFile } from './lock-file.ts'

const here = new URL('../../test/support/processes/lock-taker.ts', import.meta.url)

describe('withLockFile', () => {
  it('withLockFile lets one of several processes in at a time', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-lock-'))
    const takers = Array.from({ length: 3 }, () =>
      fork(here, [path.join(folder, 'lock'), path.join(folder, 'inside'), '300']),
    )
    const reports = await Promise.all(
      takers.map(
        (taker) =>
          new Promise<{ entries: number; overlaps: number }>((resolve) =>
            taker.on('message', (report) => resolve(report as { entries: number; overlaps: number })),
          ),
      ),
    )
    assert.ok(
      reports.every(({ entries }) => entries > 0),
      JSON.stringify(reports),
    )
    assert.deepEqual(
      reports.map(({ overlaps }) => overlaps),
      [0, 0, 0],
    )
    await fs.rm(folder, { recursive: true })
  })

  it('withLockFile takes over the lock of an ended process, and names the holder of a live one', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-lock-'))
    const file = path.join(folder, 'lock')
    await fs.writeFile(file, '999999999 dead')
    assert.equal(await withLockFile(file, async () => 'in'), 'in')
    await withLockFile(file, async () => {
      await assert.rejects(
        withLockFile(file, async () => 'in'),
        (error) => error instanceof LockedError && error.pid === process.pid,
      )
    })
    assert.deepEqual(await fs.readdir(folder), [])
    await fs.rm(folder, { recursive: true })
  })
})
