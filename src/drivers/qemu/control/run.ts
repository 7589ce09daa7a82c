// One run of a QEMU process, as recorded in its VM's folder: `qemu.json` (written before the process starts, completed
// after), `pid` and `exit` (by its supervisor), `qemu.log`. It is all that a restarted agent needs to find the process.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent, writeFileAtomically } from '../../../platform/files.ts'
import type { ProcessId } from '../../../platform/processes.ts'
import type { MemoryState } from '../../driver.ts'
import { supervisedFiles } from '../../supervised.ts'
import type { GuestIdentity } from '../network/identity.ts'
import type { PortAccess } from '../network/network.ts'

export interface QemuRun {
  readonly version: 1
  /** The boot of the host in which it was started. */
  readonly bootId: string
  /** The folder of its sockets; its name is in the process's arguments and nowhere else. */
  readonly runtime: string
  readonly doors: PortAccess
  /** What was started: memory of it can go on in its like only. */
  readonly shape?: MemoryState['description']
  /** It is loading memory and has not run yet: cut off here, it is ended, and nothing is lost. */
  readonly isResuming?: true
  /** What its guest was not told yet, or has not confirmed: it went on, or is to go on, from the memory of another VM. */
  readonly untold?: GuestIdentity
  /** What of it the guest did not confirm. */
  readonly note?: string
  /** Known when everything is up; without it, whoever started the process died before. */
  readonly process?: ProcessId
  /** It is paused while its memory is saved: cut off here, it goes on. */
  readonly isParking?: true
  /** svc3 ends it: that it has ended is no failure. */
  readonly isEnding?: true
  /** Why it ended by itself. */
  readonly problem?: string
}

/** Relative to the VM's folder. */
export const files = { run: 'qemu.json', log: 'qemu.log', ...supervisedFiles }

export async function readRun(folder: string): Promise<QemuRun | undefined> {
  const text = await readFileIfPresent(path.join(folder, files.run))
  return text === undefined ? undefined : (JSON.parse(text) as QemuRun)
}

export const writeRun = (folder: string, run: QemuRun): Promise<void> =>
  writeFileAtomically(path.join(folder, files.run), `${JSON.stringify(run)}\n`)

export async function forgetRun(folder: string): Promise<void> {
  for (const name of [files.exit, files.pid, files.run]) await fs.rm(path.join(folder, name), { force: true })
}

export const runtimeParent = '/tmp'
export const runtimePrefix = 'svc3-vm-'
/** In the folder of sockets: which VM's they are. */
export const ownerFile = 'owner'

/** Unix sockets have paths of at most 107 bytes, and a VM's folder may be anywhere: hence a name in /tmp. */
export const runtimeFolder = (folder: string): string =>
  path.join(
    runtimeParent,
    `${runtimePrefix}${createHash('sha256').update(path.resolve(folder)).digest('hex').slice(0, 20)}`,
  )

/** Made anew, ours and closed to others. /tmp is everybody's: what somebody else put there is not used. */
export async function makeRuntime(runtime: string, folder: string): Promise<void> {
  await removeRuntime(runtime)
  await fs.mkdir(runtime, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    throw new Error(`${runtime}, where this VM's sockets go, belongs to another user; remove it and start the VM again`)
  })
  await fs.writeFile(path.join(runtime, ownerFile), path.resolve(folder), { mode: 0o600 })
}

export async function removeRuntime(runtime: string): Promise<void> {
  const found = await fs.lstat(runtime).catch(() => undefined)
  if (found?.isDirectory() && found.uid === process.getuid?.()) await fs.rm(runtime, { recursive: true, force: true })
}
