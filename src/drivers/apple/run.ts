// One run of `tart run`, as its VM's folder tells it: `run.json` (written before the process starts, completed after),
// `pid` and `exit` (by its supervisor), `tart.log`. It is all that a restarted agent needs to find the process again, to
// open its ports, and to start it once more.
import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { lastLines } from '../../platform/exec.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import {
  argumentsOf,
  findByArgument,
  hostBootId,
  isAlive,
  kill,
  type ProcessId,
  startTimeOf,
  waitForEnd,
} from '../../platform/processes.ts'
import type { Forward } from '../driver.ts'
import { openLog } from '../qemu/logs.ts'
import { type Tart, tartEnvironment } from './tart.ts'

/** What is needed to open the ports of a VM. */
export interface Doors {
  readonly ip: string
  readonly forwards: readonly Forward[]
  /** The port of its screen. */
  readonly screen?: number
}

export interface Run {
  readonly version: 1
  /** The boot of the host in which it was started. */
  readonly bootId: string
  /** What tart knows the VM by: in the arguments of its process, and of no other. */
  readonly name: string
  /** What follows `tart run NAME`. */
  readonly options: readonly string[]
  readonly doors: Doors
  /** Known when it is up; without it, whoever started the process died before, or it is suspended. */
  readonly process?: ProcessId
  /** Where tart serves its screen, with the password: `vnc://:PASSWORD@127.0.0.1:PORT`. */
  readonly vnc?: string
  /** It was told to end: that it has ended is no failure. */
  readonly isEnding?: true
  /** No process is to be looked for: it is suspended. */
  readonly isSuspended?: true
  /** It was told to be still for a capture only: whoever finds it so starts it again. */
  readonly isCaptured?: true
  /** Why it ended without being told. */
  readonly problem?: string
}

/** Relative to the VM's folder. */
export const runFiles = { run: 'run.json', pid: 'pid', exit: 'exit', log: 'tart.log' } as const

export async function readRun(folder: string): Promise<Run | undefined> {
  const text = await readFileIfPresent(path.join(folder, runFiles.run))
  return text === undefined ? undefined : (JSON.parse(text) as Run)
}

export const writeRun = (folder: string, run: Run): Promise<void> =>
  writeFileAtomically(path.join(folder, runFiles.run), `${JSON.stringify(run)}\n`)

export async function forgetRun(folder: string): Promise<void> {
  for (const name of [runFiles.exit, runFiles.pid, runFiles.run]) await fs.rm(path.join(folder, name), { force: true })
}

/** Stays beside tart to tell how it ended, whether or not an agent is there. No core dumps: they hold a guest's memory. */
const supervisor = `umask 077
ulimit -c 0
"$@" &
echo $! $$ > ${runFiles.pid}
wait $!
echo $? > ${runFiles.exit}.new
mv ${runFiles.exit}.new ${runFiles.exit}
`
const supervisorName = 'svc3-tart'

/** In a session of its own, so that it outlives us. Settles when tart and its supervisor have ended. */
export async function spawnTart(folder: string, tart: Tart, { name, options }: Run): Promise<{ ended: Promise<void> }> {
  for (const file of [runFiles.exit, runFiles.pid]) await fs.rm(path.join(folder, file), { force: true })
  const log = openLog(path.join(folder, runFiles.log))
  try {
    const command = [tart.program, 'run', name, ...options]
    const child = spawn('/bin/sh', ['-c', supervisor, supervisorName, ...command], {
      cwd: folder,
      env: tartEnvironment(folder),
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.unref()
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve())
      child.once('error', () => resolve())
    })
    return { ended }
  } finally {
    closeSync(log)
  }
}

export const isOfThisBoot = async (run: Run): Promise<boolean> =>
  run.bootId === (await hostBootId()) || (run.process !== undefined && (await isAlive(run.process)))

/**
 * The process of a run of this boot, if it lives. Where the run was not completed (the agent died), it is looked for; one
 * that is about to come is waited for, which is a matter of milliseconds; a supervisor that brings none is ended.
 */
export async function findProcess(folder: string, run: Run, patienceMs = 10_000): Promise<ProcessId | undefined> {
  if (run.isSuspended) return undefined
  if (run.process) return (await isAlive(run.process)) ? run.process : undefined
  const deadline = performance.now() + patienceMs
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    const { tart } = await readPids(folder)
    const startTime = await startTimeOf(tart)
    const words = startTime === undefined ? [] : await argumentsOf(tart)
    const isItself = words.includes(run.name) && !words.includes(supervisorName)
    if (startTime !== undefined && isItself) return { pid: tart, startTime }
    // What is to become tart shows its supervisor's arguments, or none for a moment.
    const isComing = startTime !== undefined && (words.length === 0 || words.includes(run.name))
    const forerunners = isComing ? [{ pid: tart, startTime }] : await supervisorsOf(run)
    if (forerunners.length === 0) return undefined
    if (performance.now() > deadline) return endAll(forerunners)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

async function supervisorsOf({ name }: Run): Promise<readonly ProcessId[]> {
  const found: ProcessId[] = []
  for (const pid of await findByArgument(name)) {
    const words = await argumentsOf(pid)
    const startTime = await startTimeOf(pid)
    if (startTime !== undefined && words.includes(supervisorName)) found.push({ pid, startTime })
  }
  return found
}

async function endAll(ids: readonly ProcessId[]): Promise<undefined> {
  await Promise.all(ids.map((id) => kill(id, 'SIGKILL')))
  await Promise.all(ids.map((id) => waitForEnd(id, 1_000)))
}

/** The supervisor ends a moment after tart. Until then it writes what would be in a next run's place. */
export async function waitForSupervisor(folder: string, run: Run): Promise<void> {
  if (!(await isOfThisBoot(run))) return
  const { supervisor: pid } = await readPids(folder)
  const startTime = await startTimeOf(pid)
  const words = startTime === undefined ? [] : await argumentsOf(pid)
  if (startTime === undefined || !words.includes(supervisorName) || !words.includes(run.name)) return
  if (!(await waitForEnd({ pid, startTime }, 5_000))) await endAll([{ pid, startTime }])
}

async function readPids(folder: string): Promise<{ readonly tart: number; readonly supervisor: number }> {
  const text = await readFileIfPresent(path.join(folder, runFiles.pid))
  const [tart = 0, supervisor = 0] = text?.trim().split(' ').map(Number) ?? []
  return { tart, supervisor }
}

/** Of a process that is no more, as is its supervisor. Undefined: nobody was there to see it. */
export async function exitCodeOf(folder: string): Promise<number | undefined> {
  const text = await readFileIfPresent(path.join(folder, runFiles.exit))
  return text === undefined ? undefined : Number(text)
}

export async function describeEnd(folder: string): Promise<string> {
  const said = await lastOfLog(folder)
  return `tart ${endingOf(await exitCodeOf(folder))}${said === '' ? '' : `: ${said}`}`
}

function endingOf(code: number | undefined): string {
  if (code === undefined) return 'vanished together with its supervisor'
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0]
  return signal === undefined ? `ended with exit code ${code}` : `was killed by signal ${code - 128} (${signal})`
}

/** Without the password of its screen. */
export async function lastOfLog(folder: string): Promise<string> {
  return lastLines(await endOfLog(folder), 5).replaceAll(vncAddress, 'vnc://…')
}

const vncAddress = /vnc:\/\/[^\s"']+?(?=\.{3}|[\s"']|$)/g

/** What tart has printed as the address of the screen. */
export async function printedVnc(folder: string): Promise<string | undefined> {
  return (await endOfLog(folder)).match(vncAddress)?.at(-1)
}

async function endOfLog(folder: string): Promise<string> {
  const handle = await fs.open(path.join(folder, runFiles.log), 'r').catch(() => undefined)
  if (!handle) return ''
  try {
    const { size } = await handle.stat()
    const bytes = Buffer.alloc(Math.min(size, 8_192))
    await handle.read(bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8')
  } finally {
    await handle.close()
  }
}
