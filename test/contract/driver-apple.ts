// What the contract needs to know of the driver for Apple silicon: its images, its processes, its crash.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { namePrefix } from '../../src/drivers/apple/machine.ts'
import type { BaseImage, Handle } from '../../src/drivers/driver.ts'
import { argumentsOf, everyProcess, startTimeOf } from '../../src/platform/processes.ts'
import { eventually } from '../support/eventually.ts'
import { installStandIn, writeMachine } from '../support/tart-stand-in/install.ts'
import { driverContract } from './driver.ts'
import { sleeper } from './driver-blank-vm.ts'

/** Of one VM: `tart run` itself, neither its supervisor nor what it starts. */
export async function tartsOf({ folder }: Pick<Handle, 'folder'>): Promise<readonly number[]> {
  const prefix = namePrefix(folder)
  const found: number[] = []
  for (const { pid, words } of await everyProcess()) {
    const isRun = words.includes('run') && words.some((word) => word.startsWith(prefix))
    if (isRun && !words.includes('svc3-tart') && (await startTimeOf(pid)) !== undefined) found.push(pid)
  }
  return found
}

export async function killTart(handle: Handle): Promise<void> {
  for (const pid of await tartsOf(handle)) process.kill(pid, 'SIGKILL')
}

/** Whatever is alive and names one of its folders or machines. */
export async function applesOf({ folder }: Pick<Handle, 'folder'>): Promise<readonly string[]> {
  const prefix = namePrefix(folder)
  const found: string[] = []
  for (const { pid, words } of await everyProcess()) {
    if (!words.some((word) => word.includes(prefix)) || (await startTimeOf(pid)) === undefined) continue
    found.push(`${pid} ${(await argumentsOf(pid)).slice(0, 3).join(' ')}`)
  }
  return found
}

export async function blankMac(folder: string, digest: string): Promise<BaseImage> {
  const disk = path.join(folder, `${digest.replace(/\W/g, '-')}.raw`)
  await fs.writeFile(disk, '')
  await fs.truncate(disk, 64 * 2 ** 20)
  const machine = await writeMachine(folder, { kernel: sleeper, commandLine: '' })
  return {
    name: 'blank',
    digest,
    disk,
    format: 'raw',
    virtualSizeBytes: 64 * 2 ** 20,
    boot: { kind: 'firmware' },
    machine,
  }
}

/** What a boot of the host leaves: a record of another one, and no process. */
export async function pretendReboot(handle: Handle): Promise<void> {
  await killTart(handle)
  await eventually(async () => assert.deepEqual(await applesOf(handle), []))
  const file = path.join(handle.folder, 'run.json')
  const { problem: _, ...run } = JSON.parse(await fs.readFile(file, 'utf8'))
  await fs.writeFile(file, JSON.stringify({ ...run, bootId: 'an earlier boot' }))
}

export async function appleContract(): Promise<void> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-stand-in-'))
  after(() => fs.rm(folder, { recursive: true, force: true }))
  const program = await installStandIn(folder)
  driverContract('apple, on the stand-in for tart', {
    open: () => new AppleDriver({ program }),
    architecture: 'arm64',
    image: blankMac,
    crash: async (_, handle) => {
      await killTart(handle)
      return /tart was killed by signal 9 \(SIGKILL\)/
    },
    reboot: (_, handle) => pretendReboot(handle),
    processes: async (handle) => (await tartsOf(handle)).length,
    traces: applesOf,
  })
}
