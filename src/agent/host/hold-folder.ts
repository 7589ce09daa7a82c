// One agent for a folder: two would fight over the same VMs. Each that tries to take it leaves a file with a name of its own and
// then looks for others: of any two, the later one sees the earlier one. So nobody ever has to take away a file under a
// name that a living agent may have taken meanwhile; those of dead ones are never used again and can simply go.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent } from '../../platform/files.ts'
import { LockedError } from '../../platform/lock-file.ts'
import { isAlive, type ProcessId, startTimeOf } from '../../platform/processes.ts'
import { wait } from '../../rules/retry.ts'

const prefix = 'agent.lock.'
const isLock = (name: string): boolean => /^agent\.lock\.[0-9a-f]{16}$/.test(name)
/** Beside the file of one that did not only come but stays. */
const mark = (file: string): string => `${file}.held`
/** Of several that come at once the first by name waits so long for the others to give way. */
const timeoutMs = 2_000
const lookEveryMs = 10

/** Of this process. */
const held = new Set<string>()

/** Returns how to let go of it. Throws LockedError while another agent has it. */
export async function holdFolder(folder: string): Promise<() => Promise<void>> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const place = await fs.realpath(folder)
  if (held.has(place)) throw new LockedError(place, process.pid)
  held.add(place)
  try {
    const file = await take(place)
    return () => remove(file).finally(() => held.delete(place))
  } catch (error) {
    held.delete(place)
    throw error
  }
}

async function take(folder: string): Promise<string> {
  // A pid alone is reused: after a restart of a host or a container often by the next agent itself.
  const startTime = await startTimeOf(process.pid)
  if (startTime === undefined) throw new Error('Cannot read process start times on this host (from /proc or ps)')
  const name = `${prefix}${randomBytes(8).toString('hex')}`
  const file = path.join(folder, name)
  try {
    await announce(folder, name, { pid: process.pid, startTime })
    const signal = AbortSignal.timeout(timeoutMs)
    for (;;) {
      const rival = await findRival(folder, name)
      if (!rival) break
      if (rival.isHeld || rival.name < name || signal.aborted) throw new LockedError(folder, rival.pid)
      await wait(lookEveryMs, signal).catch(() => undefined)
    }
    await fs.writeFile(mark(file), '', { mode: 0o600 })
    return file
  } catch (error) {
    await remove(file)
    throw error
  }
}

/** Whole or not there: one that cannot be read would pass for a dead one's. */
async function announce(folder: string, name: string, own: ProcessId): Promise<void> {
  const draft = path.join(folder, `.${name}`)
  await fs.writeFile(draft, JSON.stringify(own), { flag: 'wx', mode: 0o600 })
  await fs.rename(draft, path.join(folder, name))
}

async function remove(file: string): Promise<void> {
  await fs.rm(mark(file), { force: true })
  await fs.rm(file, { force: true })
}

interface Rival {
  readonly name: string
  readonly pid: number
  readonly isHeld: boolean
}

/** The first by name that lives. Files of dead ones go. */
async function findRival(folder: string, ownName: string): Promise<Rival | undefined> {
  const names = new Set(await fs.readdir(folder))
  for (const name of [...names].filter((each) => isLock(each) && each !== ownName).sort()) {
    const file = path.join(folder, name)
    const id = parse(await readFileIfPresent(file))
    if (id && (await isAlive(id))) return { name, pid: id.pid, isHeld: names.has(mark(name)) }
    await remove(file)
  }
  return undefined
}

function parse(text: string | undefined): ProcessId | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as ProcessId)
  } catch {
    return undefined
  }
}
