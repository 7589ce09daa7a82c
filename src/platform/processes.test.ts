// Processes: the same pid with another start time is another process, and a zombie is none.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import path from 'node:path'
import { describe, it } from 'node:test'
import { exec } from './exec.ts'
import {
  argumentsOf,
  findByArgument,
  hostBootId,
  isAlive,
  kill,
  parseProcesses,
  startTimeOf,
  waitForEnd,
} from './processes.ts'

describe('processes', () => {
  it('processes are known by pid and start time', async () => {
    const startTime = await startTimeOf(process.pid)
    assert.ok(startTime)
    assert.equal(await isAlive({ pid: process.pid, startTime }), true)
    assert.equal(await isAlive({ pid: process.pid, startTime: `${startTime}0` }), false)
    for (const pid of [0, -1, Number.NaN, 999_999_999]) assert.equal(await startTimeOf(pid), undefined)
  })

  it('processes are found by their arguments, ended, and awaited', async () => {
    const mark = `svc3-mark-${Math.random().toString(36).slice(2)}`
    const child = spawn('/bin/sh', ['-c', 'read line', mark], { stdio: ['pipe', 'ignore', 'ignore'] })
    const pid = child.pid ?? 0
    assert.deepEqual(await findByArgument(mark), [pid])
    assert.deepEqual(await argumentsOf(pid), ['/bin/sh', '-c', 'read line', mark])
    const id = { pid, startTime: (await startTimeOf(pid)) ?? '' }
    await kill({ ...id, startTime: 'another' }, 'SIGKILL')
    assert.equal(await waitForEnd(id, 30), false)
    await kill(id, 'SIGKILL')
    assert.equal(await waitForEnd(id, 120_000), true)
    assert.deepEqual(await findByArgument(mark), [])
    assert.deepEqual(await argumentsOf(pid), [])
  })

  it('processes of macOS are read from one run of ps', () => {
    const text = `    1 /sbin/launchd\n${process.pid} node me\n  512 /opt/tart run svc3-a --no-audio\n`
    assert.deepEqual(parseProcesses(text), [
      { pid: 1, words: ['/sbin/launchd'] },
      { pid: 512, words: ['/opt/tart', 'run', 'svc3-a', '--no-audio'] },
    ])
  })

  it('processes are not alive as zombies', async () => {
    // The parent never waits for its child: it has become another program.
    const parent = spawn('/bin/sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 30'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const pid = await new Promise<number>((resolve) => parent.stdout.once('data', (text) => resolve(Number(text))))
    while ((await startTimeOf(pid)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    assert.equal(process.kill(pid, 0), true, 'it is still there')
    parent.kill('SIGKILL')
  })

  it('processes belong to a boot of the host', async () => {
    assert.match(await hostBootId(), /\S{8,}/)
    assert.equal(await hostBootId(), await hostBootId())
  })

  it('processes belong to a start of their container, which is like a boot', async () => {
    const module = path.join(import.meta.dirname, 'processes.ts')
    const script = `import(${JSON.stringify(module)}).then(async (it) => console.log(await it.hostBootId()))`
    const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']
    const container = [...asRoot, '--fork', '--pid', '--mount-proc', process.execPath, '-e', script]
    const [here, first, second] = await Promise.all([
      exec(process.execPath, ['-e', script]),
      exec('unshare', container),
      exec('unshare', container),
    ])
    assert.equal(here.stdout.trim(), await hostBootId())
    assert.equal(new Set([here, first, second].map(({ stdout }) => stdout)).size, 3)
  })
})
