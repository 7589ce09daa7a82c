// One agent for a folder; one that died holds nothing, whoever has its pid now.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { holdFolder } from './hold-folder.ts'

const program = new URL('../../../test/support/processes/agent-folder-taker.ts', import.meta.url)

/** What somebody left who had this pid before. */
const dead = (name: string): [name: string, text: string] => [
  `agent.lock.${name.padEnd(16, '0')}`,
  JSON.stringify({ pid: process.ppid, startTime: 'long ago' }),
]

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

  it('the folder of an agent is held by one, until it lets go', async () => {
    const folder = path.join(root, 'one')
    const release = await holdFolder(folder)
    await assert.rejects(holdFolder(folder), { name: 'LockedError' })
    await release()
    await (await holdFolder(folder))()
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('the folder of an agent is not held by a process that died, though another one has its pid', async () => {
    const folder = path.join(root, 'dead')
    await fs.mkdir(folder)
    const [name, text] = dead('0')
    await fs.writeFile(path.join(folder, name), text)
    await fs.writeFile(path.join(folder, `${name}.held`), '')
    await (await holdFolder(folder))()
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('the folder of an agent is got by exactly one of many processes that come at once, over and over', async () => {
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
      // Every other time over the remains of some that died: these are what is fought over.
      for (const [name, text] of round % 2 ? [dead('0'), dead('8'), dead('f')] : [])
        await fs.writeFile(path.join(folder, name), text)
      const answers = await all('take', folder)
      const others = answers.filter((answer) => answer !== 'held')
      assert.deepEqual(new Set(others), new Set(['LockedError']))
      assert.equal(others.length, takers.length - 1, `round ${round}: ${answers.join(' ')}`)
      await all('release', folder)
      assert.deepEqual(await fs.readdir(folder), [])
    }
  })

  it('the folder of an agent is free when its holder was killed', async () => {
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
