// One run of a QEMU process, as its VM's folder tells it: `qemu.json` (written before the process starts, completed
// after), `pid` and `exit` (by its supervisor), `qemu.log`. It is all that a restarted agent needs to find the process.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { childEnvironment, lastLines } from '../../platform/exec.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import {
  argumentsOf,
  findByArgument,
  isAlive,
  kill,
  type ProcessId,
  startTimeOf,
  waitForEnd,
} from '../../platform/processes.ts'
import { type Doors, networkPlaces, sealedName } from './network.ts'

export interface Run {
  readonly version: 1
  /** The boot of the host in which it was started. */
  readonly bootId: string
  /** The folder of its sockets; its name is in the process's arguments and nowhere else. */
  readonly runtime: string
  readonly doors: Doors
  /** Known when everything is up; without it, whoever started the process died before. */
  readonly process?: ProcessId
  /** It was told to end: that it has ended is no failure. */
  readonly isEnding?: true
  /** Why it ended without being told. */
  readonly problem?: string
}

const files = { run: 'qemu.json', pid: 'pid', exit: 'exit', log: 'qemu.log' }

export async function readRun(folder: string): Promise<Run | undefined> {
  const text = await readFileIfPresent(path.join(folder, files.run))
  return text === undefined ? undefined : (JSON.parse(text) as Run)
}

export const writeRun = (folder: string, run: Run): Promise<void> =>
  writeFileAtomically(path.join(folder, files.run), `${JSON.stringify(run)}\n`)

export async function forgetRun(folder: string): Promise<void> {
  for (const name of [files.exit, files.pid, files.run]) await fs.rm(path.join(folder, name), { force: true })
}

/** Unix sockets have paths of at most 107 bytes, and a VM's folder may be anywhere: hence a name in /tmp. */
export const runtimeFolder = (folder: string): string =>
  path.join('/tmp', `svc3-vm-${createHash('sha256').update(path.resolve(folder)).digest('hex').slice(0, 20)}`)

/** Made anew, ours and closed to others. /tmp is everybody's: what somebody else put there is not used. */
export async function makeRuntime(runtime: string): Promise<void> {
  await removeRuntime(runtime)
  await fs.mkdir(runtime, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    throw new Error(
      `${runtime}, where this VM's sockets go, belongs to somebody else: remove it and start the VM again`,
    )
  })
}

export async function removeRuntime(runtime: string): Promise<void> {
  const found = await fs.lstat(runtime).catch(() => undefined)
  if (found?.isDirectory() && found.uid === process.getuid?.()) await fs.rm(runtime, { recursive: true, force: true })
}

/**
 * Stays beside QEMU to tell how it ended, whether or not an agent is there. Its text is constant; what it works on comes
 * as arguments. No core dumps (they hold a guest's memory), and rather a VM than the agent when the host's memory ends.
 * QEMU holds the FIFO open as long as it lives, and nobody else does; when that was the last of the VM's processes, its
 * sockets go too, so that nothing is left in /tmp where no agent comes back.
 */
const supervisor = `umask 077
ulimit -c 0
ulimit -n 4096
{ echo 300 > /proc/self/oom_score_adj; } 2> /dev/null
life=$1
shift
mkfifo "$life"
"$@" 9<> "$life" &
echo $! $$ > ${files.pid}
wait $!
echo $? > ${files.exit}
exec 2> /dev/null
sockets=\${life%/*}
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  grep -qF "$sockets" "/proc/$(cat "$sockets/net.pid")/cmdline" || break
  sleep 0.02
done
rm -rf "$sockets"
`
const supervisorName = 'svc3-vm'

export interface Supervised {
  /** Settles when QEMU and its supervisor have ended. */
  readonly ended: Promise<void>
}

/** In a session of its own, so that it outlives us. */
export function spawnQemu(folder: string, runtime: string, command: readonly string[]): Supervised {
  const log = openSync(path.join(folder, files.log), 'w', 0o600)
  try {
    const child = spawn('/bin/sh', ['-c', supervisor, supervisorName, networkPlaces(runtime).life, ...command], {
      cwd: folder,
      env: childEnvironment,
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.unref()
    return {
      ended: new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.once('error', () => resolve())
      }),
    }
  } finally {
    closeSync(log)
  }
}

/** The process of a run, if it lives. Where the run was not completed (the agent died), it is looked for. */
export async function findProcess(folder: string, run: Run): Promise<ProcessId | undefined> {
  if (run.process) return (await isAlive(run.process)) ? run.process : undefined
  for (;;) {
    const { qemu } = await readPids(folder)
    const pids = qemu > 0 ? [qemu] : await findByArgument(run.runtime)
    let isComing = false
    for (const pid of pids) {
      const words = await argumentsOf(pid)
      const startTime = await startTimeOf(pid)
      if (startTime === undefined || !words.some((word) => word.includes(run.runtime))) continue
      if (path.basename(words[0] ?? '').startsWith('qemu-system-')) return { pid, startTime }
      // A supervisor before its QEMU, or what seals it before it becomes QEMU: a matter of milliseconds.
      isComing ||= words.includes(supervisorName) || words.includes(sealedName)
    }
    if (!isComing) return undefined
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The supervisor ends a moment after its QEMU. Until then it writes, and removes what would be in a next run's place. */
export async function waitForSupervisor(folder: string): Promise<void> {
  const { supervisor: pid } = await readPids(folder)
  const startTime = await startTimeOf(pid)
  if (startTime === undefined || !(await argumentsOf(pid)).includes(supervisorName)) return
  const id = { pid, startTime }
  if (await waitForEnd(id, 5_000)) return
  await kill(id, 'SIGKILL')
  await waitForEnd(id, 1_000)
}

async function readPids(folder: string): Promise<{ readonly qemu: number; readonly supervisor: number }> {
  const text = await readFileIfPresent(path.join(folder, files.pid))
  const [qemu = 0, supervisor = 0] = text?.trim().split(' ').map(Number) ?? []
  return { qemu, supervisor }
}

/** How a process ended that is no more, as is its supervisor; with the last that QEMU said. */
export async function describeEnd(folder: string): Promise<string> {
  const exit = await readFileIfPresent(path.join(folder, files.exit))
  const said = await lastOfLog(folder)
  return `QEMU ${endingOf(exit === undefined ? undefined : Number(exit))}${said === '' ? '' : `: ${said}`}`
}

function endingOf(code: number | undefined): string {
  if (code === undefined) return 'vanished together with its supervisor'
  if (code === 0) return 'ended without being told by svc3'
  const signal = Object.entries(os.constants.signals).find(([, number]) => number === code - 128)?.[0]
  return signal === undefined ? `ended with exit code ${code}` : `was killed by signal ${code - 128} (${signal})`
}

export async function lastOfLog(folder: string): Promise<string> {
  const handle = await fs.open(path.join(folder, files.log), 'r').catch(() => undefined)
  if (!handle) return ''
  try {
    const { size } = await handle.stat()
    const bytes = Buffer.alloc(Math.min(size, 4_096))
    await handle.read(bytes, 0, bytes.length, size - bytes.length)
    return lastLines(bytes.toString('utf8'), 5)
  } finally {
    await handle.close()
  }
}
