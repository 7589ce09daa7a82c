// Records that cannot be written now are written later; failures and reverts are reported only after that.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AgentRig } from '../../../test/support/rigs/agent-rig.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'

describe('record of a VM', () => {
  let rig: AgentRig
  let file: string

  beforeEach(async () => {
    rig = await AgentRig.start()
    await rig.deploy('a')
    file = path.join(rig.vmFolder('a'), 'svc3.json')
    await eventually(async () => assert.equal((await onDisk()).fulfilled, 1))
  })
  afterEach(() => rig[Symbol.asyncDispose]())

  const onDisk = async () => JSON.parse(await fs.readFile(file, 'utf8'))
  /** A file cannot replace a folder that is not empty. */
  const block = async (): Promise<void> => {
    await fs.rm(file)
    await fs.mkdir(path.join(file, 'in-the-way'), { recursive: true })
  }
  const unblock = () => fs.rm(file, { recursive: true })

  it("an agent's record of a VM is written as soon as that is possible again", async () => {
    await block()
    const desired = rig.server.want({ uid: 'a', power: 'stopped' })
    assert.equal((await rig.server.fulfilled(desired)).power, 'stopped')
    await rig.server.until('a', ({ problem }) => problem !== undefined)
    await unblock()
    await eventually(async () => assert.equal((await onDisk()).fulfilled, desired.generation))
    const report = await rig.server.until('a', ({ problem }) => problem === undefined)
    assert.deepEqual([report.power, report.generation], ['stopped', desired.generation])
  })

  it("an agent's record of a VM does not delay work on the VM or its deletion while it cannot be written", async () => {
    await block()
    await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'stopped' }))
    assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'running' }))).power, 'running')
    assert.equal((await rig.server.fulfilled(rig.server.want({ uid: 'a', power: 'deleted' }))).power, 'removed')
    await assert.rejects(fs.stat(rig.vmFolder('a')), { code: 'ENOENT' })
  })

  it("an agent's record of a VM is written before a failure is reported", async () => {
    await block()
    rig.world.failNext('stop', new Error('qemu is ill'))
    const desired = rig.server.want({ uid: 'a', power: 'stopped' })
    await rig.server.until('a', ({ problem }) => /in-the-way|svc3\.json/.test(problem ?? ''))
    assert.ok(rig.server.history.every(({ generation }) => generation < desired.generation))
    await unblock()
    const report = await rig.server.fulfilled(desired)
    assert.match(report.problem ?? '', /Could not be stopped.*qemu is ill/)
    assert.equal((await onDisk()).fulfilled, desired.generation)
  })

  it("an agent's record of a VM is written before a revert is reported", async () => {
    // After the revert has written the new disk generation.
    const { reached, release } = rig.world.block('start')
    const desired = rig.server.want({ uid: 'a', diskGeneration: 2 })
    await reached
    await block()
    release()
    await rig.server.until('a', ({ problem }) => /svc3\.json/.test(problem ?? ''))
    assert.ok(rig.server.history.every(({ generation }) => generation < desired.generation))
    await unblock()
    assert.equal((await rig.server.fulfilled(desired)).problem, undefined)
    assert.deepEqual([(await onDisk()).fulfilled, rig.world.count('revert a')], [desired.generation, 1])
  })

  it("an agent's record of a VM is written when the agent stops", async () => {
    await block()
    const desired = rig.server.want({ uid: 'a', power: 'stopped' })
    await rig.server.until('a', ({ problem }) => problem !== undefined)
    await unblock()
    await rig.stop()
    assert.equal((await onDisk()).fulfilled, desired.generation)
  })
})
