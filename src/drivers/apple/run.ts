// One run of `tart run`, as recorded in its VM's folder: `run.json` (written before the process starts, completed after),
// `pid` and `exit` (by its supervisor), `tart.log`. It is all that a restarted agent needs to find the process again, to
// open its ports, and to start it once more.
import fs from 'node:fs/promises'
import path from 'node:path'
import { lastLines } from '../../platform/exec.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { ProcessId } from '../../platform/processes.ts'
import type { Forward } from '../driver.ts'
import { endOfLog } from '../logs.ts'
import * as supervised from '../supervised.ts'
import { type Tart, tartEnvironment } from './tart.ts'

/** What is needed to open the ports of a VM. */
export interface PortAccess {
  readonly ip: string
  readonly forwards: readonly Forward[]
  /** The port of its screen. */
  readonly screen?: number
}

export interface AppleRun {
  readonly version: 1
  /** The boot of the host in which it was started. */
  readonly bootId: string
  /** What tart knows the VM by: in the arguments of its process, and of no other. */
  readonly name: string
  /** What follows `tart run NAME`. */
  readonly options: readonly string[]
  readonly doors: PortAccess
  /** Known when it is up; without it, whoever started the process died before, or it is suspended. */
  readonly process?: ProcessId
  /** Where tart serves its screen, with the password: `vnc://:PASSWORD@127.0.0.1:PORT`. */
  readonly vnc?: string
  /** svc3 ends it: that it has ended is no failure. */
  readonly isEnding?: true
  /** No process is to be looked for: it is suspended. */
  readonly isSuspended?: true
  /** It is paused for a capture only: whoever finds it so starts it again. */
  readonly isCaptured?: true
  /** Why it ended by itself. */
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

/** No core dumps: they hold a guest's memory. */
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
  // What is to become tart shows its supervisor's arguments, too.
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

/** Without the password of its screen. */
export const lastOfLog = async (folder: string): Promise<string> =>
  lastLines(await said(folder), 5).replaceAll(vncAddress, 'vnc://…')

const vncAddress = /vnc:\/\/[^\s"']+?(?=\.{3}|[\s"']|$)/g

/** What tart has printed as the address of the screen. */
export const printedVnc = async (folder: string): Promise<string | undefined> =>
  (await said(folder)).match(vncAddress)?.at(-1)
