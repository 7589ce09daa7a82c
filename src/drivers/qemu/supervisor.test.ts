// Supervisors: no other process is taken for one, and waiting for a QEMU that never starts is limited.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { hostBootId, isAlive, type ProcessId, startTimeOf } from '../../platform/processes.ts'
import type { QemuRun } from './control/run.ts'
import { findProcess, isOfThisBoot, waitForSupervisor } from './supervisor.ts'

describe('QEMU supervisor', () => {
  let folder: string
  let run: QemuRun
  const children: ReturnType<typeof spawn>[] = []
  beforeEach(async () => {
    folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-supervisor-'))
    const runtime = path.join(folder, 'sockets')
    run = { version: 1, bootId: await hostBootId(), runtime, doors: { kind: 'user', ip: '127.0.0.1', ports: [] } }
  })
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    await fs.rm(folder, { recursive: true })
  })

  /** A process that looks like a supervisor. */
  async function pretend(runtime: string): Promise<ProcessId> {
    const child = spawn('/bin/sh', ['-c', 'read line; :', 'svc3-vm', path.join(runtime, 'life')], { stdio: 'pipe' })
    children.push(child)
    const pid = child.pid ?? 0
    return { pid, startTime: (await startTimeOf(pid)) ?? '' }
  }
  const note = (qemu: number, supervisor: number) => fs.writeFile(path.join(folder, 'pid'), `${qemu} ${supervisor}\n`)

  it('a QEMU supervisor of another VM, or with a pid from an earlier boot, is neither awaited nor ended', async () => {
    const other = await pretend('/tmp/svc3-vm-of-another')
    await note(999_999, other.pid)
    await waitForSupervisor(folder, run)
    const own = await pretend(run.runtime)
    await note(999_999, own.pid)
    await waitForSupervisor(folder, { ...run, bootId: 'an earlier boot' })
    assert.deepEqual([await isAlive(other), await isAlive(own)], [true, true])
  })

  it('a QEMU supervisor without a QEMU is ended after a while', async () => {
    const stuck = await pretend(run.runtime)
    const startedMs = performance.now()
    assert.equal(await findProcess(folder, run, 300), undefined)
    assert.ok(performance.now() - startedMs >= 300)
    assert.equal(await isAlive(stuck), false)
  })

  it('a run of QEMU is of this boot also with another boot id, as long as QEMU lives', async () => {
    const id = await pretend(run.runtime)
    const earlier = { ...run, bootId: 'made otherwise' }
    assert.equal(await isOfThisBoot(run), true)
    assert.equal(await isOfThisBoot(earlier), false)
    assert.equal(await isOfThisBoot({ ...earlier, process: id }), true)
    assert.equal(await isOfThisBoot({ ...earlier, process: { ...id, startTime: '1' } }), false)
    assert.equal(await isOfThisBoot({ ...earlier, process: id, runtime: '/tmp/svc3-vm-of-another' }), false)
  })
})
