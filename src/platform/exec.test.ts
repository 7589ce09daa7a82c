// Programs that are run: what comes back, what is said when they fail, and what they do not get.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { eventually } from '../../test/support/tools/eventually.ts'
import { ExecError, exec } from './exec.ts'
import { startTimeOf, waitForEnd } from './processes.ts'

const node = process.execPath

describe('exec', () => {
  it('exec returns the output of a program, and passes its input', async () => {
    const { stdout, stderr } = await exec('/bin/sh', ['-c', 'cat; echo "$1" >&2', 'name', '$(id) "x"'], { input: 'in' })
    assert.deepEqual({ stdout, stderr }, { stdout: 'in', stderr: '$(id) "x"\n' })
  })

  it('exec reports which program failed, how, and its last output', async () => {
    const failing = exec('/bin/sh', ['-c', 'for n in 1 2 3 4 5 6 7 8 9; do echo "line $n" >&2; done; exit 3'])
    await assert.rejects(failing, (error) => {
      assert.ok(error instanceof ExecError)
      assert.equal(error.exitCode, 3)
      assert.match(error.message, /^\/bin\/sh failed with exit code 3: line 5\n.*line 9$/s)
      return true
    })
    await assert.rejects(exec('/bin/sh', ['-c', 'kill -9 $$']), /was killed by SIGKILL/)
    await assert.rejects(exec('svc3-no-such-program', []), /svc3-no-such-program is not installed, or not in PATH/)
  })

  it('exec ends at its time limit and on abort', async () => {
    await assert.rejects(exec('sleep', ['60'], { timeoutMs: 50 }), /sleep did not end within 50 ms/)
    const calledOff = new AbortController()
    const running = exec('sleep', ['60'], { signal: calledOff.signal })
    calledOff.abort(new Error('called off'))
    await assert.rejects(running, /called off/)
    await assert.rejects(exec('sleep', ['60'], { signal: calledOff.signal }), /called off/)
  })

  it('exec ends the children of a program, and does not wait for those that survive', async () => {
    const { stdout } = await exec('/bin/sh', ['-c', 'sleep 600 & echo $!'])
    const left = Number(stdout)
    assert.equal(process.kill(left, 0), true, 'what a program leaves behind is left, and its output not waited for')
    process.kill(left, 'SIGKILL')
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-exec-'))
    const calledOff = new AbortController()
    const script = 'sleep 600 & echo $! > pid.new; mv pid.new pid; wait'
    const running = exec('/bin/sh', ['-c', script], { cwd: folder, signal: calledOff.signal })
    const pid = Number(await eventually(() => fs.readFile(path.join(folder, 'pid'), 'utf8')))
    calledOff.abort(new Error('called off'))
    await assert.rejects(running, /called off/)
    await fs.rm(folder, { recursive: true })
    assert.ok(pid > 0)
    const gone = { pid, startTime: (await startTimeOf(pid)) ?? 'gone' }
    assert.equal(await waitForEnd(gone, 120_000), true, 'the whole group was killed')
  })

  it('exec keeps the end of a long output only', async () => {
    const { stdout } = await exec(node, ['-e', 'process.stdout.write("x".repeat(3e6) + "end")'], { outputBytes: 1_000 })
    assert.equal(stdout.length, 1_000)
    assert.ok(stdout.endsWith('end'))
  })

  it('exec passes on nothing of our environment but the path', async () => {
    process.env.SVC3_EXEC_CANARY = 'secret'
    const { stdout } = await exec(node, ['-p', 'Object.keys(process.env).sort().join()'])
    delete process.env.SVC3_EXEC_CANARY
    assert.equal(stdout.trim(), 'LANG,PATH')
  })
})
