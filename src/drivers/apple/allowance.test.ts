// The two macOS VMs of a Mac, shared by agents: what is left for each, the refusal of a third one, and the return of a
// share.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { startTimeOf } from '../../platform/processes.ts'
import { Allowance } from './allowance.ts'
import type { Tart } from './tart.ts'

let root: string
beforeEach(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-allowance-'))
})
afterEach(() => fs.rm(root, { recursive: true }))

const listed = (vms: readonly object[]): Tart => {
  const answer = async () => ({ stdout: JSON.stringify(vms), stderr: '' }) as never
  return { program: 'tart', command: answer, inHome: answer }
}
const agent = (name: string, byHand: readonly object[] = []): Allowance =>
  new Allowance(listed(byHand), { home: path.join(root, 'home'), dataDir: path.join(root, name) })

async function vm(of: string, name: string, system = 'darwin'): Promise<string> {
  const folder = path.join(root, of, 'vms', name)
  const place = path.join(folder, 'tart', 'vms', name)
  await fs.mkdir(place, { recursive: true })
  await fs.writeFile(path.join(place, 'config.json'), JSON.stringify({ os: system }))
  return folder
}

describe('allowance of macOS VMs', () => {
  it('the limit of two VMs with macOS applies to all agents of a host, also for concurrent starts', async () => {
    const [one, two] = [agent('one'), agent('two')]
    const wanted = [
      [one, await vm('one', 'a'), 'a'],
      [two, await vm('two', 'b'), 'b'],
      [one, await vm('one', 'c'), 'c'],
      [two, await vm('two', 'd'), 'd'],
    ] as const
    const results = await Promise.allSettled(wanted.map(([who, folder, name]) => who.take(folder, name)))
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 2)
    const [refused] = results.filter((each) => each.status === 'rejected')
    assert.match(String(refused?.reason), /this Mac runs 2 VMs with macOS already, .* Apple allows 2: stop one/)
    assert.equal((await one.left()) + (await two.left()), 2, 'what the one has the other lacks')
    for (const name of ['a', 'b', 'c', 'd']) await one.giveBack(name)
    assert.deepEqual([await one.left(), await two.left()], [2, 2])
  })

  it('the limit of VMs with macOS keeps the share of a VM that has one, and does not count Linux', async () => {
    const one = agent('one')
    const folder = await vm('one', 'a')
    await one.take(folder, 'a')
    await one.take(folder, 'a')
    await one.take(await vm('one', 'l', 'linux'), 'l')
    assert.deepEqual([await one.left(), await agent('two').left()], [2, 1])
  })

  it('the limit of VMs with macOS does not count processes that have ended', async () => {
    const child = spawn('sleep', ['60'])
    const pid = child.pid ?? 0
    const folder = await vm('one', 'a')
    await agent('one').hold(folder, { name: 'a', process: { pid, startTime: (await startTimeOf(pid)) ?? '' } })
    assert.equal(await agent('two').left(), 1)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    assert.equal(await agent('two').left(), 2)
  })

  it('the limit of VMs with macOS is explained by the VMs that run, or macOS has lost count until the host is restarted', async () => {
    const [one, two] = [agent('one'), agent('two')]
    const error = new Error('Apple allows no more')
    for (const name of ['a', 'b']) await one.take(await vm('one', name), name)
    assert.equal(await two.explainLimit(error), error)
    assert.equal(await two.refusal(), undefined)
    await one.giveBack('b')
    assert.match((await two.explainLimit(error)).message, /lost count of them\. Drain the node, then restart this Mac/)
    for (const each of [one, two]) {
      assert.match((await each.refusal()) ?? '', /restart this Mac/)
      assert.equal(await each.left(), 0)
    }
    await fs.writeFile(path.join(root, 'home', 'svc3-macos', 'lost-count'), 'an earlier boot')
    assert.deepEqual([await one.refusal(), await one.left()], [undefined, 2])
  })

  it('the limit of VMs with macOS counts VMs that people run by hand', async () => {
    const state = { Running: true, State: 'running' }
    const vms = [
      { Name: 'mine', ...state },
      { Name: 'box', ...state },
      { Name: 'idle', State: 'stopped' },
    ]
    for (const [name, system] of Object.entries({ mine: 'darwin', box: 'linux', idle: 'darwin' })) {
      await fs.mkdir(path.join(root, 'home', 'vms', name), { recursive: true })
      await fs.writeFile(path.join(root, 'home', 'vms', name, 'config.json'), JSON.stringify({ os: system }))
    }
    assert.equal(await agent('one', vms).left(), 1)
  })
})
