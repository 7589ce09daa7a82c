// Which process is which: a pid alone is reused, a pid with its start time is not. And which run of the host this is.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import { exec } from './exec.ts'

export interface ProcessId {
  readonly pid: number
  /** Opaque: equal or not. */
  readonly startTime: string
}

const isLinux = process.platform === 'linux'

/** The start time of a living process; undefined when there is none (a zombie is none). */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  if (isLinux) {
    const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(absent)
    // After the name, which may hold anything, in the last parenthesis: state is the 1st field, starttime the 20th.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  }
  const { stdout } = await exec('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  const [state = ''] = stdout.trim().split(' ', 1)
  return state.startsWith('Z') ? undefined : stdout.trim().slice(state.length).trim() || undefined
}

export const isAlive = async ({ pid, startTime }: ProcessId): Promise<boolean> => (await startTimeOf(pid)) === startTime

/** The arguments of a process; empty when it is gone or not ours to look at. */
export async function argumentsOf(pid: number): Promise<readonly string[]> {
  if (isLinux) {
    const text = await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(absent)
    return text === undefined || text === '' ? [] : text.replace(/\0$/, '').split('\0')
  }
  const { stdout } = await exec('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim() === '' ? [] : stdout.trim().split(' ')
}

/** Processes one of whose arguments contains the text. Looks at every process: for recovery, not for every day. */
export async function findByArgument(text: string): Promise<readonly number[]> {
  const all = await everyProcess()
  return all.filter(({ words }) => words.some((word) => word.includes(text))).map(({ pid }) => pid)
}

/** Every process but this one, with its arguments. */
export async function everyProcess(): Promise<readonly { readonly pid: number; readonly words: readonly string[] }[]> {
  const others = (await everyPid()).filter((pid) => pid !== process.pid)
  const found = []
  for (const pid of others) found.push({ pid, words: await argumentsOf(pid) })
  return found
}

async function everyPid(): Promise<readonly number[]> {
  if (isLinux) return (await fs.readdir('/proc')).map(Number).filter((pid) => Number.isInteger(pid) && pid > 0)
  const { stdout } = await exec('ps', ['-axo', 'pid='])
  return stdout
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0)
}

/** Waits until a process is no more. There is no event for a process that is not our child; this is bounded. */
export async function waitForEnd(id: ProcessId, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  for (let pauseMs = 2; await isAlive(id); pauseMs = Math.min(pauseMs * 2, 50)) {
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return true
}

export async function kill(id: ProcessId, signal: NodeJS.Signals): Promise<void> {
  if (!(await isAlive(id))) return
  try {
    process.kill(id.pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

let bootId: Promise<string> | undefined

/**
 * Another one after each boot of the host; and in a container after each start of it, which ends every process in there
 * just as well: so the first process, by its start time and its namespace, is part of it.
 */
export const hostBootId = (): Promise<string> => {
  bootId ??= readBootId()
  return bootId
}

async function readBootId(): Promise<string> {
  if (isLinux) {
    const boot = (await fs.readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
    const space = await fs.readlink('/proc/self/ns/pid').catch(absent)
    return [boot, (await startTimeOf(1)) ?? '', space ?? ''].join('/')
  }
  const { stdout } = await exec('sysctl', ['-n', 'kern.bootsessionuuid'])
  return stdout.trim() || `${os.hostname()}-unknown`
}

/** Of a living process, equal only to itself, also after a reboot. */
export async function stampOf(pid: number): Promise<string> {
  const started = await startTimeOf(pid)
  return started === undefined ? 'none' : hash('sha256', `${await hostBootId()} ${pid} ${started}`).slice(0, 16)
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ESRCH' || error.code === 'EACCES') return undefined
  throw error
}
