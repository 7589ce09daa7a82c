// Identifies processes by pid and start time, because pids are reused; and the current boot of the host.
import { hash } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import { exec } from './exec.ts'

export interface ProcessId {
  readonly pid: number
  /** Opaque. Compare for equality only. */
  readonly startTime: string
}

const isLinux = process.platform === 'linux'

/** Undefined if no such process exists, or it is a zombie. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  if (isLinux) {
    const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(absent)
    // The name in parentheses may contain anything. After it, state is the 1st field and starttime the 20th.
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  }
  const { stdout } = await exec('ps', ['-o', 'stat=,lstart=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  const [state = ''] = stdout.trim().split(' ', 1)
  return state.startsWith('Z') ? undefined : stdout.trim().slice(state.length).trim() || undefined
}

export const isAlive = async ({ pid, startTime }: ProcessId): Promise<boolean> => (await startTimeOf(pid)) === startTime

/** Empty if the process has ended, or is not accessible. */
export async function argumentsOf(pid: number): Promise<readonly string[]> {
  if (isLinux) {
    const text = await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(absent)
    return text === undefined || text === '' ? [] : text.replace(/\0$/, '').split('\0')
  }
  const { stdout } = await exec('ps', ['-o', 'command=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim() === '' ? [] : stdout.trim().split(' ')
}

/** Processes with an argument that contains the text. Slow, because it reads all processes. */
export async function findByArgument(text: string): Promise<readonly number[]> {
  const all = await everyProcess()
  return all.filter(({ words }) => words.some((word) => word.includes(text))).map(({ pid }) => pid)
}

export async function everyProcess(): Promise<readonly { readonly pid: number; readonly words: readonly string[] }[]> {
  if (!isLinux) return parseProcesses((await exec('ps', ['-axww', '-o', 'pid=,command='])).stdout)
  const others = (await fs.readdir('/proc')).map(Number).filter((pid) => pid > 0 && pid !== process.pid)
  const found = []
  for (const pid of others) found.push({ pid, words: await argumentsOf(pid) })
  return found
}

/** Reads lines of `ps -o pid=,command=`, without this process. */
export const parseProcesses = (text: string): readonly { readonly pid: number; readonly words: readonly string[] }[] =>
  [...text.matchAll(/^ *(\d+) (.*)$/gm)]
    .map(([, pid, command = '']) => ({ pid: Number(pid), words: command.trim().split(' ') }))
    .filter(({ pid }) => pid !== process.pid)

/** Polls, because only children have an exit event. Returns whether the process ended in time. */
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
 * Differs after each boot of the host. In a container it differs after each start of the container, because that ends
 * all processes, too; this is why it includes the first process and its namespace.
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

/** Unique for a process, even across reboots. */
export async function stampOf(pid: number): Promise<string> {
  const started = await startTimeOf(pid)
  return started === undefined ? 'none' : hash('sha256', `${await hostBootId()} ${pid} ${started}`).slice(0, 16)
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ESRCH' || error.code === 'EACCES') return undefined
  throw error
}
