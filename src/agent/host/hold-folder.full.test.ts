// Only one agent uses a folder, and one that died does not keep it.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { holdFolder } from './hold-folder.ts'

const program = new URL('../../../test/support/processes/agent-folder-taker.ts', import.meta.url)

describe('folder of an agent', () => {
  let root: string
  const takers: ChildProcess[] = []
  before(async () => {
    root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-hold-'))
  })
  after(async () => {
    for (const taker of takers) taker.kill('SIGKILL')
    await fs.rm(root, { recursive: true, force: true })
  })

  it('the folder of an agent is used by one agent until that one releases it', async () => {
    const folder = path.join(root, 'one')
    const release = await holdFolder(folder)
    await assert.rejects(holdFolder(folder), { name: 'LockedError' })
    await release()
    await (await holdFolder(folder))()
    assert.deepEqual(await fs.readdir(folder), ['agent.lock'])
  })

  it('the folder of an agent is taken by exactly one of many processes that try at once', async () => {
    for (let count = 0; count < 8; count++) takers.push(fork(program, { execArgv: [] }))
    await Promise.all(takers.map((taker) => once(taker, 'message')))
    const all = async (order: string, folder: string): Promise<string[]> => {
      const answers = takers.map((taker) => once(taker, 'message'))
      for (const taker of takers) taker.send({ order, folder })
      return (await Promise.all(answers)).map(([answer]) => String(answer))
    }
    for (let round = 0; round < 40; round++) {
      const folder = path.join(root, `round-${round}`)
      await fs.mkdir(folder)
      const answers = await all('take', folder)
      const others = answers.filter((answer) => answer !== 'held')
      assert.deepEqual(new Set(others), new Set(['LockedError']))
      assert.equal(others.length, takers.length - 1, `round ${round}: ${answers.join(' ')}`)
      await all('release', folder)
    }
  })

  it('the folder of an agent is free when the agent was killed', async () => {
    const folder = path.join(root, 'killed')
    const holder = fork(program, { execArgv: [] })
    takers.push(holder)
    await once(holder, 'message')
    holder.send({ order: 'take', folder })
    assert.deepEqual((await once(holder, 'message'))[0], 'held')
    await assert.rejects(holdFolder(folder), { name: 'LockedError', pid: holder.pid })
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    await (await holdFolder(folder))()
  })
})
