// Removes folders of sockets without a VM: its folder was removed by hand, or an agent died during the start.
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { readFileIfPresent } from '../../platform/files.ts'
import { everyProcess } from '../../platform/processes.ts'
import { ownerFile, removeRuntime, runtimeParent, runtimePrefix } from './control/run.ts'
import { qmpSocket } from './control/sockets.ts'
import { tryPrefix } from './network/seal.ts'

/** A folder without an owner file may have just been created. */
const namelessMs = 3_600_000

/** Only folders of this user that no process names. Returns the removed ones. */
export async function sweepRuntimes(parent = runtimeParent, nowMs = Date.now()): Promise<readonly string[]> {
  const names = await fs.readdir(parent).catch(() => [])
  const candidates: string[] = []
  for (const name of names) {
    const folder = path.join(parent, name)
    if (!name.startsWith(runtimePrefix) && !name.startsWith(tryPrefix)) continue
    if ((await isOurs(folder)) && (await isOrphan(folder, nowMs))) candidates.push(folder)
  }
  if (candidates.length === 0) return []
  const processes = await everyProcess()
  const removed: string[] = []
  for (const folder of candidates) {
    if (processes.some(({ words }) => words.some((word) => word.includes(folder)))) continue
    if (await answers(qmpSocket(folder))) continue
    await removeRuntime(folder)
    removed.push(folder)
  }
  return removed
}

/** Processes in another container may use the same /tmp without being visible here. */
function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(socketPath)
    const settle = (isThere: boolean): void => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}

async function isOurs(folder: string): Promise<boolean> {
  const found = await fs.lstat(folder).catch(() => undefined)
  return found?.isDirectory() === true && found.uid === process.getuid?.() && (found.mode & 0o777) === 0o700
}

async function isOrphan(folder: string, nowMs: number): Promise<boolean> {
  const owner = await readFileIfPresent(path.join(folder, ownerFile)).catch(() => undefined)
  if (owner === undefined || owner === '') {
    const { mtimeMs } = await fs.lstat(folder).catch(() => ({ mtimeMs: nowMs }))
    return nowMs - mtimeMs > namelessMs
  }
  return fs.access(owner).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
}
