// One agent for a folder: two would fight over the same VMs.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent } from '../platform/files.ts'
import { LockedError, withLockFile } from '../platform/lock-file.ts'
import { isAlive, type ProcessId, startTimeOf } from '../platform/processes.ts'

/** Of this process. */
const held = new Set<string>()

/** Returns how to let go of it. Throws LockedError while another agent has it. */
export async function holdFolder(folder: string): Promise<() => Promise<void>> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const place = await fs.realpath(folder)
  if (held.has(place)) throw new LockedError(place, process.pid)
  held.add(place)
  try {
    const release = await hold(place)
    return () => release().finally(() => held.delete(place))
  } catch (error) {
    held.delete(place)
    throw error
  }
}

async function hold(folder: string): Promise<() => Promise<void>> {
  const file = path.join(folder, 'agent.lock')
  const holder = path.join(folder, 'agent.pid')
  await removeStale(file, holder)
  const taken = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const holding = withLockFile(file, async () => {
    const own: ProcessId = { pid: process.pid, startTime: (await startTimeOf(process.pid)) ?? '' }
    await fs.writeFile(holder, JSON.stringify(own))
    taken.resolve()
    await released.promise
    await fs.rm(holder, { force: true })
  })
  holding.catch(taken.reject)
  await taken.promise
  return async () => {
    released.resolve()
    await holding
  }
}

/** A lock names a pid, and after a restart of a host or a container somebody else has it, often the next agent itself. */
async function removeStale(file: string, holder: string): Promise<void> {
  const known = parse(await readFileIfPresent(holder))
  const pid = Number((await readFileIfPresent(file))?.split(' ')[0])
  if (known?.pid === pid && !(await isAlive(known))) await fs.rm(file, { force: true })
}

function parse(text: string | undefined): ProcessId | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as ProcessId)
  } catch {
    return undefined
  }
}
