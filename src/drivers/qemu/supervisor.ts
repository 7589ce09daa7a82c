// What stays beside a QEMU and tells how it ended; and how both are found again, by a restarted agent, too.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { childEnvironment, lastLines } from '../../platform/exec.ts'
import { readFileIfPresent } from '../../platform/files.ts'
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
import { openLog } from './logs.ts'
import { networkPlaces, sealedName } from './network.ts'
import { files, type Run } from './run.ts'

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

/** In a session of its own, so that it outlives us. `memory` is what it finds open as its descriptor 3. */
export function spawnQemu(folder: string, runtime: string, command: readonly string[], memory?: string): Supervised {
  const log = openLog(path.join(folder, files.log))
  const state = memory === undefined ? undefined : openSync(memory, 'r')
  try {
    const child = spawn('/bin/sh', ['-c', supervisor, supervisorName, networkPlaces(runtime).life, ...command], {
      cwd: folder,
      env: childEnvironment,
      detached: true,
      stdio: ['ignore', log, log, ...(state === undefined ? [] : [state])],
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
    if (state !== undefined) closeSync(state)
  }
}

/**
 * Whether what is written of a run can be about processes of now. A process that still lives is proof, too: what makes
 * up the id of a boot may be another after an update of svc3.
 */
export const isOfThisBoot = async (run: Run): Promise<boolean> =>
  run.bootId === (await hostBootId()) ||
  (run.process !== undefined && (await isAlive(run.process)) && (await names(run.process.pid, run.runtime)))

const names = async (pid: number, runtime: string): Promise<boolean> =>
  (await argumentsOf(pid)).some((word) => word.includes(runtime))

/** A supervisor before its QEMU, or what seals it before it becomes QEMU. */
const isForerunner = (words: readonly string[]): boolean => words.includes(supervisorName) || words.includes(sealedName)

/**
 * The process of a run of this boot, if it lives. Where the run was not completed (the agent died), it is looked for; one
 * that is about to come is waited for, which is a matter of milliseconds; one that does not come in time is ended.
 */
export async function findProcess(folder: string, run: Run, patienceMs = 10_000): Promise<ProcessId | undefined> {
  if (run.process) return (await isAlive(run.process)) ? run.process : undefined
  const deadline = performance.now() + patienceMs
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 50)) {
    const { qemu, supervisor } = await readPids(folder)
    const pids = qemu > 0 ? [qemu, supervisor] : await findByArgument(run.runtime)
    let isComing = false
    for (const pid of pids) {
      const words = await argumentsOf(pid)
      const startTime = await startTimeOf(pid)
      // Nothing to read: it is just becoming another program.
      isComing ||= startTime !== undefined && pid === qemu && words.length === 0
      if (startTime === undefined || !words.some((word) => word.includes(run.runtime))) continue
      if (path.basename(words[0] ?? '').startsWith('qemu-system-')) return { pid, startTime }
      isComing ||= isForerunner(words)
    }
    if (!isComing) return undefined
    if (performance.now() > deadline) return endForerunners(run)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** All of them at once: one that was left could still become a QEMU. */
async function endForerunners({ runtime }: Run): Promise<undefined> {
  const ids: ProcessId[] = []
  for (const pid of await findByArgument(runtime)) {
    const startTime = await startTimeOf(pid)
    if (startTime !== undefined && isForerunner(await argumentsOf(pid))) ids.push({ pid, startTime })
  }
  await Promise.all(ids.map((id) => kill(id, 'SIGKILL')))
  await Promise.all(ids.map((id) => waitForEnd(id, 1_000)))
}

/** The supervisor ends a moment after its QEMU. Until then it writes, and removes what would be in a next run's place. */
export async function waitForSupervisor(folder: string, run: Run): Promise<void> {
  // After a boot of the host its number may be anybody's.
  if (!(await isOfThisBoot(run))) return
  const { supervisor: pid } = await readPids(folder)
  const startTime = await startTimeOf(pid)
  const words = startTime === undefined ? [] : await argumentsOf(pid)
  if (startTime === undefined || !words.includes(supervisorName) || !words.includes(networkPlaces(run.runtime).life))
    return
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
