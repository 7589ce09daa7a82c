// One agent for a folder; one that died holds nothing, whoever has its pid now.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { holdFolder } from './hold-folder.ts'

describe('the folder of an agent', () => {
  let folder: string
  before(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-hold-'))
  })
  after(() => fs.rm(folder, { recursive: true, force: true }))

  it('is held by one, until it lets go', async () => {
    const release = await holdFolder(folder)
    await assert.rejects(holdFolder(folder), { name: 'LockedError' })
    await release()
    await (await holdFolder(folder))()
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('is not held by a process that died, though another one has its pid', async () => {
    await fs.writeFile(path.join(folder, 'agent.lock'), `${process.ppid} x`)
    await assert.rejects(holdFolder(folder), { name: 'LockedError' })
    await fs.writeFile(path.join(folder, 'agent.pid'), JSON.stringify({ pid: process.ppid, startTime: 'long ago' }))
    await (await holdFolder(folder))()
  })
})
