// One `tart run`, as recorded in its VM's folder: `run.json` (written before the process starts, completed after), `pid`
// and `exit` (by its supervisor), `tart.log`. With these a restarted agent finds the process, opens its ports, and starts
// it again.
import fs from 'node:fs/promises'
import path from 'node:path'
import { lastLines } from '../../platform/exec.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { ProcessId } from '../../platform/processes.ts'
import type { Forward } from '../driver.ts'
import { endOfLog } from '../logs.ts'
import * as supervised from '../supervised.ts'
import { type Tart, tartEnvironment } from './tart.ts'

/** The ports of a VM and the address on which they are opened. */
export interface PortAccess {
  readonly ip: string
  readonly forwards: readonly Forward[]
  readonly screen?: number
}

export interface AppleRun {
  readonly version: 1
  /** Id of the boot of the host in which it was started. */
  readonly bootId: string
  /** tart's name of the VM, which is in the arguments of its process and of no other. */
  readonly name: string
  /** The arguments after `tart run NAME`. */
  readonly options: readonly string[]
  readonly doors: PortAccess
  /** Set when the VM is up. Absent after an agent died during the start, and for a suspended VM. */
  readonly process?: ProcessId
  /** The address of tart's screen, with the password: `vnc://:PASSWORD@127.0.0.1:PORT`. */
  readonly vnc?: string
  /** svc3 ends the process, so its end is no failure. */
  readonly isEnding?: true
  /** The VM is suspended and has no process. */
  readonly isSuspended?: true
  /** The VM is held still for a capture only: an agent that finds it so starts it again. */
  readonly isCaptured?: true
  /** Why the process ended by itself. */
  readonly problem?: string
}

/** Relative to the VM's folder. */
export const runFiles = { run: 'run.json', log: 'tart.log', ...supervised.supervisedFiles } as const

export async function readRun(folder: string): Promise<AppleRun | undefined> {
  const text = await readFileIfPresent(path.join(folder, runFiles.run))
  return text === undefined ? undefined : (JSON.parse(text) as AppleRun)
}

export const writeRun = (folder: string, run: AppleRun): Promise<void> =>
  writeFileAtomically(path.join(folder, runFiles.run), `${JSON.stringify(run)}\n`)

export async function forgetRun(folder: string): Promise<void> {
  for (const name of [runFiles.exit, runFiles.pid, runFiles.run]) await fs.rm(path.join(folder, name), { force: true })
}

/** Core dumps are off because they contain a guest's memory. */
const supervisor = `umask 077
ulimit -c 0
"$@" &
echo $! $$ > ${runFiles.pid}
wait $!
echo $? > ${runFiles.exit}.new
mv ${runFiles.exit}.new ${runFiles.exit}
`
const supervisorName = 'svc3-tart'

export async function spawnTart(
  folder: string,
  tart: Tart,
  { name, options }: AppleRun,
): Promise<supervised.Supervised> {
  for (const file of [runFiles.exit, runFiles.pid]) await fs.rm(path.join(folder, file), { force: true })
  return supervised.spawnSupervised(folder, {
    script: supervisor,
    name: supervisorName,
    words: [tart.program, 'run', name, ...options],
    env: tartEnvironment(folder),
    log: path.join(folder, runFiles.log),
  })
}

const marksOf = ({ name }: AppleRun): supervised.Marks => ({
  text: name,
  isProgram: (words) => words.includes(name) && words.includes('run') && !words.includes(supervisorName),
  // A process that is about to become tart has the supervisor's arguments.
  isForerunner: (words) => words.includes(supervisorName),
  isSupervisor: (words) => words.includes(supervisorName) && words.includes(name),
})

export const isOfThisBoot = (run: AppleRun): Promise<boolean> => supervised.isOfThisBoot(run, marksOf(run))

export const findProcess = async (folder: string, run: AppleRun): Promise<ProcessId | undefined> =>
  run.isSuspended ? undefined : supervised.findSupervised(folder, run.process, marksOf(run))

export const waitForSupervisor = (folder: string, run: AppleRun): Promise<void> =>
  supervised.waitForSupervisor(folder, run, marksOf(run))

export const describeEnd = async (folder: string): Promise<string> =>
  supervised.describeEnd(folder, 'tart', await lastOfLog(folder))

const said = (folder: string): Promise<string> => endOfLog(path.join(folder, runFiles.log))

/** Without the password of the screen. */
export const lastOfLog = async (folder: string): Promise<string> =>
  lastLines(await said(folder), 5).replaceAll(vncAddress, 'vnc://…')

const vncAddress = /vnc:\/\/[^\s"']+?(?=\.{3}|[\s"']|$)/g

/** The address of the screen, as tart printed it. */
export const printedVnc = async (folder: string): Promise<string | undefined> =>
  (await said(folder)).match(vncAddress)?.at(-1)
