// One run of a QEMU process, as recorded in its VM's folder: `qemu.json` (written before the process starts, completed
// after), `pid` and `exit` (by its supervisor), `qemu.log`. A restarted agent finds the process by these.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ProcessId } from '../../../platform/processes.ts'
import type { MemoryState } from '../../driver.ts'
import { runRecord, supervisedFiles } from '../../supervised.ts'
import type { GuestIdentity } from '../network/identity.ts'
import type { PortAccess } from '../network/network.ts'

export interface QemuRun {
  readonly version: 1
  /** Id of the boot of the host in which it was started. */
  readonly bootId: string
  /** The folder of its sockets, whose name is in the arguments of the process and nowhere else. */
  readonly runtime: string
  readonly doors: PortAccess
  /** What was started: its memory can resume only in the same shape. */
  readonly shape?: MemoryState['description']
  /** It is loading memory and has not run yet. If interrupted, it is ended, and nothing is lost. */
  readonly isResuming?: true
  /** The identity that its guest has not confirmed yet, because it resumed from the memory of another VM. */
  readonly untold?: GuestIdentity
  /** For the user: what of its identity the guest did not confirm. */
  readonly note?: string
  /** Set when everything is up. Absent if the agent died during the start. */
  readonly process?: ProcessId
  /** It is paused while its memory is saved. If interrupted, it continues. */
  readonly isParking?: true
  /** svc3 ends the process, so its end is no failure. */
  readonly isEnding?: true
  /** Why the process ended by itself. */
  readonly problem?: string
}

/** Relative to the VM's folder. */
export const files = { run: 'qemu.json', log: 'qemu.log', ...supervisedFiles }

export const { read: readRun, write: writeRun, forget: forgetRun } = runRecord<QemuRun>(files.run)

/** In /tmp because unix sockets have paths of at most 107 bytes, and a VM's folder may be anywhere. */
export const runtimeFolder = (folder: string): string =>
  `/tmp/svc3-vm-${hash('sha256', path.resolve(folder)).slice(0, 20)}`

/** Creates the folder, accessible to this user only. A folder in /tmp that belongs to another user is refused. */
export async function makeRuntime(runtime: string): Promise<void> {
  await removeRuntime(runtime)
  await fs.mkdir(runtime, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    throw new Error(`${runtime}, where this VM's sockets go, belongs to another user; remove it and start the VM again`)
  })
}

export async function removeRuntime(runtime: string): Promise<void> {
  const found = await fs.lstat(runtime).catch(() => undefined)
  if (found?.isDirectory() && found.uid === process.getuid?.()) await fs.rm(runtime, { recursive: true, force: true })
}
