// The end of a VM's process, and its standing still: asked first, then by `tart stop`, then by a signal that nobody survives.
import { failpoint } from '../../platform/failpoint.ts'
import { kill, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import type { StopOptions } from '../driver.ts'
import { isSuspendable, isSuspended, readTartConfig } from './machine.ts'
import { type AppleRun, waitForSupervisor, writeRun } from './run.ts'
import type { Tart } from './tart.ts'

interface Living {
  readonly run: AppleRun
  readonly process: ProcessId
}

const killMs = 5_000
const lookEveryMs = 100
/** Memory is written to the host's disk, all of it. */
const suspendMs = 300_000
const flushMs = 5_000
const askMs = 5_000
/** So long may a guest that cannot be suspended take to shut down for a capture. */
const captureGraceSeconds = 60

/** The guest is asked to shut down; `tart stop` is like pulling the plug. */
export async function endProcess(tart: Tart, folder: string, { run, process }: Living, options: StopOptions) {
  // A full disk is a reason to stop a VM: without the record, its end would only be called a failure, were we cut off.
  await writeRun(folder, { ...run, process, isEnding: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOSPC' && error.code !== 'EDQUOT') throw error
  })
  failpoint('apple-ending')
  if (options.graceSeconds > 0 && !options.signal?.aborted) {
    await askToEnd(tart, folder, { run, process }, options.signal)
    if (await endsWithin(process, options)) return
  }
  await tart.command(folder, ['stop', run.name, '--timeout', '5'], { timeoutMs: 20_000 }).catch(() => undefined)
  if (await waitForEnd(process, killMs)) return
  await kill(process, 'SIGKILL')
  if (!(await waitForEnd(process, killMs)))
    throw new Error(`process ${process.pid} of this VM does not end, not even by SIGKILL: is the host's disk stuck?`)
}

/** SIGUSR2 is its power button, at which Linux shuts down and macOS asks who sits there: so macOS is shut down from inside. */
async function askToEnd(tart: Tart, folder: string, { run, process }: Living, signal?: AbortSignal): Promise<void> {
  const isMac = isSuspendable(await readTartConfig(folder, run))
  const words = ['exec', run.name, 'sudo', '-n', 'shutdown', '-h', 'now']
  const isTold =
    isMac &&
    (await tart.command(folder, words, { signal, timeoutMs: askMs }).then(
      () => true,
      () => false,
    ))
  if (!isTold) await kill(process, 'SIGUSR2')
}

async function endsWithin(process: ProcessId, { graceSeconds, signal }: StopOptions): Promise<boolean> {
  const untilMs = performance.now() + graceSeconds * 1_000
  while (performance.now() < untilMs && !signal?.aborted) if (await waitForEnd(process, lookEveryMs)) return true
  return false
}

/** What the guest has not written yet, where it has tart's guest agent; all others are taken as they are. */
export async function flushGuest(tart: Tart, folder: string, name: string, signal: AbortSignal): Promise<void> {
  await tart.command(folder, ['exec', name, 'sync'], { signal, timeoutMs: flushMs }).catch(() => undefined)
}

/**
 * Suspended, or shut down where it cannot be: afterwards no process has its files open. Says whether it is suspended: a
 * tart that fails to do so ends the VM.
 */
export async function holdStill(tart: Tart, folder: string, living: Living, how: 'suspend' | 'stop'): Promise<boolean> {
  const { run, process } = living
  const isAsked =
    how === 'suspend' &&
    (await tart.command(folder, ['suspend', run.name]).then(
      () => true,
      () => false,
    ))
  if (!isAsked || !(await waitForEnd(process, suspendMs))) {
    await endProcess(tart, folder, living, { graceSeconds: captureGraceSeconds })
    await writeRun(folder, run)
  }
  await waitForSupervisor(folder, run)
  return isSuspended(folder, run)
}
