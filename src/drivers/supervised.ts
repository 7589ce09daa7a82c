// A hypervisor's process, and its supervisor: a shell that records how the process ended. Both outlive the agent, and
// the next agent finds them. Each driver supplies the script and the marks of its processes.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { lastLines } from '../platform/exec.ts'
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
import { type JsonFile, jsonFile } from './json-file.ts'
import { endOfLog, openLog } from './logs.ts'

/** Relative to the VM's folder. The supervisor writes `<program> <supervisor>` into `pid` and the exit code into `exit`. */
export const supervisedFiles = { pid: 'pid', exit: 'exit' } as const

/** Stores the record of a run in the VM's folder. `forget` also removes the files that the supervisor wrote. */
export function runRecord<Run>(name: string): JsonFile<Run> & { forget(folder: string): Promise<void> } {
  return {
    ...jsonFile<Run>(name),
    async forget(folder) {
      for (const file of [supervisedFiles.exit, supervisedFiles.pid, name])
        await fs.rm(path.join(folder, file), { force: true })
    },
  }
}

interface Launch {
  /** The supervisor's script, run in the VM's folder. It is constant; its input comes as `words`. */
  readonly script: string
  /** Identifies the supervisor among processes. */
  readonly name: string
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The file in the VM's folder that receives the output of the program and of the supervisor. */
  readonly log: string
  /** A file that the program finds open as descriptor 3. */
  readonly input?: string | undefined
}

/** Starts a supervisor in a separate session, so that it outlives the agent. `ended` resolves when it has ended. */
export function spawnSupervised(
  folder: string,
  { script, name, words, env, log, input }: Launch,
): { readonly ended: Promise<void> } {
  const said = openLog(path.join(folder, log))
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
        child.once('exit', () => resolve()).once('error', () => resolve())
      }),
    }
  } finally {
    closeSync(said)
    if (given !== undefined) closeSync(given)
  }
}

/** Marks distinguish the processes of one run from all others. */
export interface Marks {
  /** Text within an argument of every process of the run, and of no other process. */
  readonly text: string
  isProgram(words: readonly string[]): boolean
  /** A supervisor before it started its program, or a process that is about to become the program. */
  isForerunner(words: readonly string[]): boolean
  isSupervisor(words: readonly string[]): boolean
}

interface RecordedRun {
  /** Id of the boot of the host in which it was written. */
  readonly bootId: string
  readonly process?: ProcessId | undefined
  /** It has no process. */
  readonly isSuspended?: true
  /** Why the process ended by itself. */
  readonly problem?: string
}

/** A run with its living process. */
export interface Running<Run> {
  readonly run: Run
  readonly process: ProcessId
}

interface Supervised<Run> {
  /** The name of the program, for users. */
  readonly program: string
  /** The file in the VM's folder with its output. */
  readonly log: string
  /** Removes secrets from the output. */
  withoutSecrets?(output: string): string
  marksOf(run: Run): Marks
}

const areMarked = (words: readonly string[], { text }: Marks): boolean => words.some((word) => word.includes(text))

/** Returns functions that inspect the processes of a driver, including those that an earlier agent started. */
export function supervision<Run extends RecordedRun>({ program, log, withoutSecrets, marksOf }: Supervised<Run>) {
  /**
   * Whether a record can refer to a living process. A living process with the marks is proof, too, because an update of
   * svc3 may compute the id of the boot differently.
   */
  const isOfThisBoot = async (run: Run): Promise<boolean> =>
    run.bootId === (await hostBootId()) ||
    (run.process !== undefined &&
      (await isAlive(run.process)) &&
      areMarked(await argumentsOf(run.process.pid), marksOf(run)))

  /** Waits for the end of the supervisor, because until then it writes and removes files that the next run uses. */
  const waitForSupervisor = async (folder: string, run: Run): Promise<void> => {
    // After a boot of the host the pid may belong to any process.
    if (!(await isOfThisBoot(run))) return
    const { supervisor: pid } = await readPids(folder)
    const startTime = await startTimeOf(pid)
    if (startTime === undefined || !marksOf(run).isSupervisor(await argumentsOf(pid))) return
    if (!(await waitForEnd({ pid, startTime }, 5_000))) await end({ pid, startTime })
  }

  const lastOfLog = async (folder: string): Promise<string> => {
    const output = lastLines(await endOfLog(path.join(folder, log)), 5)
    return withoutSecrets ? withoutSecrets(output) : output
  }

  /** Finds the program. Only for a run of this boot of the host, because pids are reused after a boot. */
  const findProcess = async (folder: string, run: Run, timeoutMs?: number): Promise<ProcessId | undefined> =>
    run.isSuspended ? undefined : findSupervised(folder, run.process, marksOf(run), timeoutMs)

  return {
    isOfThisBoot,
    waitForSupervisor,
    lastOfLog,
    findProcess,
    /** Undefined for a run that has ended, or of an earlier boot. */
    async findRunning(folder: string, run: Run | undefined): Promise<Running<Run> | undefined> {
      if (!run || run.problem !== undefined || !(await isOfThisBoot(run))) return undefined
      const process = await findProcess(folder, run)
      return process && { run, process }
    },
    /** How the program ended, with its last output. */
    async describeEnd(folder: string): Promise<string> {
      const said = await lastOfLog(folder)
      return `${program} ${endingOf(await exitCodeOf(folder))}${said === '' ? '' : `: ${said}`}`
    },
  }
}

/**
 * Returns the recorded process if it is alive. If the agent died before it recorded one, searches for the program. One
 * that is about to start is awaited, and killed if it does not start in time.
 */
async function findSupervised(
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
      // A process has no arguments while it executes another program.
      isComing ||= startTime !== undefined && pid === program && words.length === 0
      if (startTime === undefined || !areMarked(words, marks)) continue
      if (marks.isProgram(words)) return { pid, startTime }
      isComing ||= marks.isForerunner(words)
    }
    if (!isComing) return undefined
    if (performance.now() > deadline) return endForerunners(marks)
    await sleep(pauseMs)
  }
}

/** Kills all forerunners at once, because any of them could still become the program. */
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

async function readPids(folder: string): Promise<{ readonly program: number; readonly supervisor: number }> {
  const text = await readFileIfPresent(path.join(folder, supervisedFiles.pid))
  const [program = 0, supervisor = 0] = text?.trim().split(' ').map(Number) ?? []
  return { program, supervisor }
}

/** Returns the exit code that the supervisor recorded; undefined if it recorded none. */
export async function exitCodeOf(folder: string): Promise<number | undefined> {
  const text = await readFileIfPresent(path.join(folder, supervisedFiles.exit))
  return text === undefined ? undefined : Number(text)
}

function endingOf(code: number | undefined): string {
  if (code === undefined) return 'vanished together with its supervisor'
  if (code === 0) return 'ended without being told by svc3'
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0]
  return signal === undefined ? `ended with exit code ${code}` : `was killed by signal ${code - 128} (${signal})`
}

/**
 * Waits until the record says that svc3 ends the VM. A full disk is ignored, because the VM must stop even then; an
 * interrupted stop is then reported as a failure.
 */
export async function recordEnding(write: Promise<void>): Promise<void> {
  await write.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC' && error.code !== 'EDQUOT') throw error
  })
}

export const endMs = 5_000

export async function endBySignals(process: ProcessId, signals: readonly NodeJS.Signals[]): Promise<void> {
  for (const signal of signals) {
    await kill(process, signal)
    if (await waitForEnd(process, endMs)) return
  }
  throw new Error(`process ${process.pid} of this VM does not end, not even by SIGKILL: is the host's disk stuck?`)
}
