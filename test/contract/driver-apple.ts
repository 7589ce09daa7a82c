// What the contract needs to know of the driver for Apple silicon: its images, its processes, its crash.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { AppleDriver } from '../../src/drivers/apple/driver.ts'
import { cloneFile, namePrefix } from '../../src/drivers/apple/machine.ts'
import type { BaseImage, Handle } from '../../src/drivers/driver.ts'
import { exec } from '../../src/platform/exec.ts'
import { argumentsOf, everyProcess, startTimeOf } from '../../src/platform/processes.ts'
import { installStandIn, standInOptions, writeMachine } from '../support/stand-ins/tart/install.ts'
import { eventually } from '../support/tools/eventually.ts'
import { driverContract } from './driver.ts'
import { sleeper } from './driver-blank-vm.ts'

/**
 * The `tart run` process of one VM; neither its supervisor, nor a child that was forked and has not called exec yet.
 */
export async function tartsOf({ folder }: Pick<Handle, 'folder'>): Promise<readonly number[]> {
  const prefix = namePrefix(folder)
  const found: { pid: number; parent: number }[] = []
  for (const { pid, words } of await everyProcess()) {
    const isRun = words.includes('run') && words.some((word) => word.startsWith(prefix))
    if (isRun && !words.includes('svc3-tart') && (await startTimeOf(pid)) !== undefined)
      found.push({ pid, parent: await parentOf(pid) })
  }
  const pids = found.map(({ pid }) => pid)
  return found.filter(({ parent }) => !pids.includes(parent)).map(({ pid }) => pid)
}

const parentOf = async (pid: number): Promise<number> =>
  Number((await exec('ps', ['-o', 'ppid=', '-p', String(pid)]).catch(() => ({ stdout: '' }))).stdout)

async function killTart(handle: Handle): Promise<void> {
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
async function pretendReboot(handle: Handle): Promise<void> {
  await killTart(handle)
  await eventually(async () => assert.deepEqual(await applesOf(handle), []))
  const file = path.join(handle.folder, 'run.json')
  const { problem: _, ...run } = JSON.parse(await fs.readFile(file, 'utf8'))
  await fs.writeFile(file, JSON.stringify({ ...run, bootId: 'an earlier boot' }))
}

/** The pattern that finds the processes of a VM under any user. */
const processes = {
  crash: async (_: AppleDriver, handle: Handle) => {
    await killTart(handle)
    return /tart was killed by signal 9 \(SIGKILL\)/
  },
  reboot: (_: AppleDriver, handle: Handle) => pretendReboot(handle),
  processes: async (handle: Handle) => (await tartsOf(handle)).length,
  traces: applesOf,
}

export async function onStandIn(): Promise<void> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-stand-in-'))
  after(() => fs.rm(folder, { recursive: true, force: true }))
  const program = await installStandIn(folder)
  driverContract('apple, on the stand-in for tart', {
    open: () => new AppleDriver({ ...standInOptions(program), home: path.join(folder, 'home') }),
    architecture: 'arm64',
    image: blankMac,
    isDeaf: true,
    ...processes,
  })
}

/** With tart, from a macOS that it has already: SVC3_APPLE_VM names it; it is cloned and not changed. */
export async function onRealMac(): Promise<void> {
  const name = process.env.SVC3_APPLE_VM
  if (!name) throw new Error('SVC3_APPLE_VM has to name a VM of tart with macOS: tart clone IMAGE NAME makes one')
  const place = path.join(process.env.TART_HOME ?? path.join(os.homedir(), '.tart'), 'vms', name)
  const inside = (file: string) => path.join(place, file)
  const { size } = await fs.stat(inside('disk.img'))
  const { cpuCountMin, memorySizeMin } = JSON.parse(await fs.readFile(inside('config.json'), 'utf8'))
  driverContract(`apple, on tart with ${name}`, {
    open: () => new AppleDriver(),
    architecture: 'arm64',
    imageMib: size / 2 ** 20,
    shape: { cpu: cpuCountMin, memoryMiB: memorySizeMin / 2 ** 20 },
    image: async (folder, digest) => {
      const disk = path.join(folder, `${digest.replace(/\W/g, '-')}.raw`)
      await cloneFile(inside('disk.img'), disk)
      const machine = { config: inside('config.json'), nvram: inside('nvram.bin') }
      return { name, digest, disk, format: 'raw', virtualSizeBytes: size, boot: { kind: 'firmware' }, machine }
    },
    ...processes,
  })
}
