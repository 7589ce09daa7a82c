// A hypervisor's process, and the shell beside it that records how it ended. Both outlive the agent, and the next agent
// finds them. Each driver supplies what differs.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { readFileIfPresent } from '../platform/files.ts'
import {
  argumentsOf,
  findByArgument,
  hostBootId,
  isAlive,
  kill,
  type ProcessId,
  startTimeOf,
  waitForEnd,
} from '../platform/processes.ts'
import { openLog } from './logs.ts'

/** Relative to the VM's folder. The supervisor writes `<program> <supervisor>` into `pid` and the exit code into `exit`. */
export const supervisedFiles = { pid: 'pid', exit: 'exit' } as const

export interface Launch {
  /** For the shell, in the VM's folder. It is constant; its input comes as words. */
  readonly script: string
  /** Identifies the shell among processes. */
  readonly name: string
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Receives the output of both. */
  readonly log: string
  /** A file that they find open as descriptor 3. */
  readonly input?: string | undefined
}

export interface Supervised {
  /** Settles when the program and its supervisor have ended. */
  readonly ended: Promise<void>
}

/** Starts it in a separate session, so that it outlives the agent. */
export function spawnSupervised(folder: string, { script, name, words, env, log, input }: Launch): Supervised {
  const said = openLog(log)
  const given = input === undefined ? undefined : openSync(input, 'r')
  try {
    const child = spawn('/bin/sh', ['-c', script, name, ...words], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', said, said, ...(given === undefined ? [] : [given])],
    })
    child.unref()
    return {
      ended: new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.once('error', () => resolve())
      }),
    }
  } finally {
    closeSync(said)
    if (given !== undefined) closeSync(given)
  }
}

/** Distinguish the processes of one run from all others. */
export interface Marks {
  /** Part of an argument of each of them, and of no other process. */
  readonly text: string
  isProgram(words: readonly string[]): boolean
  /** A supervisor before it started its program, or a process that is about to become the program. */
  isForerunner(words: readonly string[]): boolean
  isSupervisor(words: readonly string[]): boolean
}

interface Written {
  /** Id of the boot of the host in which it was written. */
  readonly bootId: string
  readonly process?: ProcessId | undefined
}

const areMarked = (words: readonly string[], { text }: Marks): boolean => words.some((word) => word.includes(text))

/**
 * Whether a record can refer to a living process. A living process with the marks is proof, too, because an update of svc3
 * may compute the id of the boot differently.
 */
export const isOfThisBoot = async ({ bootId, process }: Written, marks: Marks): Promise<boolean> =>
  bootId === (await hostBootId()) ||
  (process !== undefined && (await isAlive(process)) && areMarked(await argumentsOf(process.pid), marks))

/**
 * Finds the program of a run of this boot. If the agent died before it recorded the process, the program is searched for.
 * One that is about to start is awaited, and ended if it does not come in time.
 */
export async function findSupervised(
  folder: string,
  known: ProcessId | undefined,
  marks: Marks,
  timeoutMs = 10_000,
): Promise<ProcessId | undefined> {
  if (known) return (await isAlive(known)) ? known : undefined
  const deadline = performance.now() + timeoutMs
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    const { program, supervisor } = await readPids(folder)
    const pids = program > 0 ? [program, supervisor] : await findByArgument(marks.text)
    let isComing = false
    for (const pid of pids) {
      const words = await argumentsOf(pid)
      const startTime = await startTimeOf(pid)
      // Without arguments: it is just becoming another program.
      isComing ||= startTime !== undefined && pid === program && words.length === 0
      if (startTime === undefined || !areMarked(words, marks)) continue
      if (marks.isProgram(words)) return { pid, startTime }
      isComing ||= marks.isForerunner(words)
    }
    if (!isComing) return undefined
    if (performance.now() > deadline) return endForerunners(marks)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** All of them at once: any of them could still become the program. */
async function endForerunners(marks: Marks): Promise<undefined> {
  const ids: ProcessId[] = []
  for (const pid of await findByArgument(marks.text)) {
    const startTime = await startTimeOf(pid)
    if (startTime !== undefined && marks.isForerunner(await argumentsOf(pid))) ids.push({ pid, startTime })
  }
  await Promise.all(ids.map(end))
}

async function end(id: ProcessId): Promise<void> {
  await kill(id, 'SIGKILL')
  await waitForEnd(id, 1_000)
}

/** The supervisor ends shortly after its program. Until then it writes and removes files that a next run would use. */
export async function waitForSupervisor(folder: string, run: Written, marks: Marks): Promise<void> {
  // After a boot of the host the pid may belong to any process.
  if (!(await isOfThisBoot(run, marks))) return
  const { supervisor: pid } = await readPids(folder)
  const startTime = await startTimeOf(pid)
  if (startTime === undefined || !marks.isSupervisor(await argumentsOf(pid))) return
  if (!(await waitForEnd({ pid, startTime }, 5_000))) await end({ pid, startTime })
}

async function readPids(folder: string): Promise<{ readonly program: number; readonly supervisor: number }> {
  const text = await readFileIfPresent(path.join(folder, supervisedFiles.pid))
  const [program = 0, supervisor = 0] = text?.trim().split(' ').map(Number) ?? []
  return { program, supervisor }
}

/** The exit code of a program that ended together with its supervisor. Undefined if it was not recorded. */
export async function exitCodeOf(folder: string): Promise<number | undefined> {
  const text = await readFileIfPresent(path.join(folder, supervisedFiles.exit))
  return text === undefined ? undefined : Number(text)
}

/** `said` is the last output of the program. */
export async function describeEnd(folder: string, program: string, said: string): Promise<string> {
  return `${program} ${endingOf(await exitCodeOf(folder))}${said === '' ? '' : `: ${said}`}`
}

function endingOf(code: number | undefined): string {
  if (code === undefined) return 'vanished together with its supervisor'
  if (code === 0) return 'ended without being told by svc3'
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0]
  return signal === undefined ? `ended with exit code ${code}` : `was killed by signal ${code - 128} (${signal})`
}
