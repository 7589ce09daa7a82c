// One `tart run`, as recorded in its VM's folder: `run.json` (written before the process starts, completed after), `pid`
// and `exit` (by its supervisor), `tart.log`. With these a restarted agent finds the process, opens the VM's ports, and
// starts a VM again whose capture was interrupted.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { ProcessId } from '../../platform/processes.ts'
import type { Forward } from '../driver.ts'
import { endOfLog } from '../logs.ts'
import * as supervised from '../supervised.ts'
import { type Tart, tartEnvironment } from './tart.ts'

/** The ports of a VM and the address on which they are opened. */
export interface TartPorts {
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
  readonly doors: TartPorts
  /** Set when the VM is up. Absent after an agent died during the start, and for a suspended VM. */
  readonly process?: ProcessId
  /** The address of tart's screen, with the password: `vnc://:PASSWORD@127.0.0.1:PORT`. */
  readonly vnc?: string
  /** svc3 ends the process, so its end is no failure. */
  readonly isEnding?: true
  /** The VM is suspended and has no process. */
  readonly isSuspended?: true
  /** The VM is suspended or stopped only for a capture. A restarted agent starts it again. */
  readonly isCaptured?: true
  /** For the user: how the last start differed from what was requested. */
  readonly note?: string
  /** Why the VM failed: its process ended by itself, or could not be suspended or resumed. */
  readonly problem?: string
}

/** Relative to the VM's folder. */
export const runFiles = { run: 'run.json', log: 'tart.log', ...supervised.supervisedFiles } as const

export const { read: readRun, write: writeRun, forget: forgetRun } = supervised.runRecord<AppleRun>(runFiles.run)

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

export async function spawnTart(folder: string, tart: Tart, { name, options }: AppleRun) {
  for (const file of [runFiles.exit, runFiles.pid]) await fs.rm(path.join(folder, file), { force: true })
  return supervised.spawnSupervised(folder, {
    script: supervisor,
    name: supervisorName,
    words: [tart.program, 'run', name, ...options],
    env: tartEnvironment(folder),
    log: runFiles.log,
  })
}

const vncAddress = /vnc:\/\/[^\s"']+?(?=\.{3}|[\s"']|$)/g

export type RunningTart = supervised.Running<AppleRun>

export const { isOfThisBoot, findProcess, findRunning, waitForSupervisor, describeEnd, lastOfLog } =
  supervised.supervision<AppleRun>({
    program: 'tart',
    log: runFiles.log,
    // The address of the screen has its password.
    withoutSecrets: (output) => output.replaceAll(vncAddress, 'vnc://…'),
    marksOf: ({ name }) => ({
      text: name,
      isProgram: (words) => words.includes(name) && words.includes('run') && !words.includes(supervisorName),
      // A process that is about to become tart has the supervisor's arguments.
      isForerunner: (words) => words.includes(supervisorName),
      isSupervisor: (words) => words.includes(supervisorName) && words.includes(name),
    }),
  })

export const printedVnc = async (folder: string): Promise<string | undefined> =>
  (await endOfLog(path.join(folder, runFiles.log))).match(vncAddress)?.at(-1)
