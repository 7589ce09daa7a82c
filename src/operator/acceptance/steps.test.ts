// The order of steps of an acceptance run, and cleaning up after one that was killed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { Lab } from './lab.ts'
import { runSteps, Skipped, step, steps, type Trial } from './steps.ts'

const trial: Trial = {
  lab: new Lab('/nonexistent', []),
  options: { image: 'x', cpu: 1, memory: 1 },
  registry: undefined,
}
const passes = async () => 'seen'

describe('steps of an acceptance run', () => {
  it('a step that fails has its reason, and skips only those that need it', async () => {
    const fails = async () => Promise.reject(new Error('no disk'))
    const table = [
      step('a', 1, [], fails),
      step('b', 1, ['a'], passes),
      step('c', 1, ['b'], passes),
      step('d', 1, [], passes),
      step('e', 1, [], async () => Promise.reject(new Skipped('no registry'))),
    ]
    const told: string[] = []
    const results = await runSteps(table, trial, AbortSignal.timeout(10_000), ({ step: one }) => told.push(one))
    assert.deepEqual(
      results.map(({ result, text }) => `${result}: ${text}`),
      [
        'failed: no disk',
        'skipped: Step "a" did not pass',
        'skipped: Step "b" did not pass',
        'passed: seen',
        'skipped: no registry',
      ],
    )
    assert.deepEqual(told, ['a', 'b', 'c', 'd', 'e'])
  })

  it('Ctrl-C fails the step that runs and skips the others', async () => {
    const controller = new AbortController()
    const waits = async ({ signal }: { signal: AbortSignal }) => {
      controller.abort(new Error('Ctrl-C'))
      signal.throwIfAborted()
      return ''
    }
    const results = await runSteps(
      [step('a', 1, [], waits), step('b', 1, [], passes)],
      trial,
      controller.signal,
      () => undefined,
    )
    assert.deepEqual(
      results.map(({ result, text }) => `${result}: ${text}`),
      ['failed: Ctrl-C', 'skipped: Interrupted'],
    )
  })

  it('steps need earlier steps only, and have distinct names', () => {
    const names = steps.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
    for (const [at, { needs }] of steps.entries())
      for (const need of needs) assert.ok(names.slice(0, at).includes(need), need)
  })
})

describe('cleaning up after an acceptance run', () => {
  it('only a folder of an earlier run, an empty one and a new one can be used, because it is deleted', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-acceptance-test-'))
    const isUsed = (name: string): Promise<boolean> => new Lab(path.join(root, name), []).isUsed()
    try {
      for (const name of ['empty', 'logs', 'run']) await fs.mkdir(path.join(root, name))
      for (const file of ['notes', 'logs/server.log', 'run/svc3-acceptance-server.log'])
        await fs.writeFile(path.join(root, file), '')
      assert.deepEqual([await isUsed('new'), await isUsed('empty'), await isUsed('run')], [false, false, true])
      await assert.rejects(isUsed('logs'), /has other files/)
      await assert.rejects(isUsed('notes'), /cannot be used \(ENOTDIR\)/)
    } finally {
      await fs.rm(root, { recursive: true })
    }
  })

  it('cleaning up ends the processes of the folder and no others, and deletes it', { timeout: 30_000 }, async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-acceptance-test-'))
    const folder = path.join(root, 'run')
    await fs.mkdir(folder)
    // The last words stand for the arguments of server, agent and tart.
    const start = async (...words: string[]) => {
      const child = spawn('sh', ['-c', 'echo; read line', ...words], { stdio: ['pipe', 'pipe', 'ignore'] })
      await once(child.stdout, 'data')
      return child
    }
    const ours = [
      await start('svc3', 'dev', '--data', path.join(folder, 'server')),
      await start('svc3', 'agent', '--data', path.join(folder, 'node'), '-a', 'x'),
      await start('tart', 'run', 'svc3-uid-1f', `--dir=svc3:${folder}/node/vms/uid/guest:ro`),
    ]
    const others = [
      await start('tart', 'run', 'svc3-uid-1ff', `--dir=svc3:${root}/node/vms/uid/guest:ro`),
      await start('svc3', 'agent', '--data', path.join(root, 'node')),
      await start('tail', path.join(folder, 'agent.log')),
      await start('sh', '-c', `svc3 agent acceptance --data ${folder}/`),
    ]
    try {
      const ended = Promise.all(ours.map((child) => once(child, 'exit')))
      await new Lab(folder, []).cleanUp()
      for (const [, signal] of await ended) assert.equal(signal, 'SIGKILL')
      for (const child of others) assert.deepEqual([child.exitCode, child.signalCode], [null, null])
      await assert.rejects(fs.access(folder))
    } finally {
      for (const child of [...ours, ...others]) child.kill('SIGKILL')
      await fs.rm(root, { recursive: true, force: true })
    }
  })
})
