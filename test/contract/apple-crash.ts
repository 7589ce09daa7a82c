// A driver for Apple silicon that dies at a point of its work: the VM, its disk and its captures are whole afterwards.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { ExecError, exec } from '../../src/platform/exec.ts'
import { installStandIn, standInOptions } from '../support/stand-ins/tart/install.ts'
import { bindOnce } from '../support/tools/free-port.ts'
import { applesOf, blankMac, tartsOf } from './driver-apple.ts'
import { specify } from './driver-vm.ts'

export type CrashStep = 'start' | 'stop' | 'revert' | 'capture'

/** What the VM is to be after the next start looked at it. */
const expected: Readonly<Record<CrashStep, readonly string[]>> = {
  start: ['running', 'stopped'],
  stop: ['running', 'stopped'],
  revert: ['stopped'],
  capture: ['running'],
}

export async function dieAt(step: CrashStep, point: string): Promise<void> {
  const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-apple-crash-'))
  const program = await installStandIn(path.join(root, 'bin'))
  const home = path.join(root, 'home')
  const driver = new AppleDriver({ ...standInOptions(program), home })
  const vm = await specify({ architecture: 'arm64', image: blankMac }, root)
  const handle = await driver.create(vm, path.join(root, 'vm'))
  const newer = { ...vm, image: await blankMac(root, 'sha256:newer') }
  const signal = AbortSignal.timeout(120_000)
  const later = new AppleDriver({ ...standInOptions(program), home })
  try {
    if (step === 'stop' || step === 'capture') await driver.start(handle, vm, signal)
    await driver.close()
    const task = path.join(root, 'task.json')
    await fs.writeFile(
      task,
      JSON.stringify({ handle, vm: step === 'revert' ? newer : vm, apple: { ...standInOptions(program), home } }),
    )
    const crasher = path.join(import.meta.dirname, 'driver-crasher.ts')
    await assert.rejects(
      exec(process.execPath, ['--no-warnings', crasher, step, task, 'one'], {
        timeoutMs: 60_000,
        env: { ...process.env, SVC3_TEST: '1', SVC3_FAILPOINT: point } as Record<string, string>,
      }),
      (error) => error instanceof ExecError && /SIGKILL/.test(error.message),
      `nothing died at ${point}`,
    )
    const { state } = await later.inspect(handle)
    assert.ok(expected[step].includes(state), `${state} after a ${step} that died at ${point}`)
    assert.ok((await tartsOf(handle)).length <= 1)
    if (step === 'capture') {
      const capture = await later.capturing.capture(handle, vm, { id: 'one', withMemory: false }, signal)
      assert.deepEqual(await later.capturing.list(handle), [capture])
      assert.equal(capture.layers.length, 1, 'what never became one is gone')
      assert.deepEqual((await fs.readdir(path.join(handle.folder, 'captures'))).length, 2)
      assert.equal((await later.inspect(handle)).state, 'running')
    }
    if (step === 'revert') {
      const base = await later.reverting.base(handle)
      await later.start(handle, base === newer.image.digest ? newer : vm, signal)
    } else await later.start(handle, vm, signal)
    assert.equal((await tartsOf(handle)).length, 1)
    await later.stop(handle, { graceSeconds: 0 })
    for (const { hostPort } of vm.forwards) await bindOnce(hostPort)
  } finally {
    await later.destroy(handle)
    await later.close()
    assert.deepEqual(await applesOf(handle), [])
    await fs.rm(root, { recursive: true })
  }
}
