// Ends the process of a VM or holds it still: first by asking the guest, then by `tart stop`, then by SIGKILL.
import fs from 'node:fs/promises'
import { failpoint } from '../../platform/failpoint.ts'
import { kill, type ProcessId, waitForEnd } from '../../platform/processes.ts'
import { succeeds } from '../../platform/succeeds.ts'
import type { StopOptions } from '../driver.ts'
import { endBySignals, endMs, recordEnding } from '../supervised.ts'
import { isSuspendable, isSuspended, readTartConfig, tartFile } from './machine.ts'
import { type AppleRun, lastOfLog, type RunningTart, waitForSupervisor, writeRun } from './run.ts'
import type { Tart } from './tart.ts'

const lookEveryMs = 100
/** All of the memory is written to the host's disk. */
const suspendMs = 300_000
const flushMs = 5_000
const askMs = 5_000
/** For a guest that cannot be suspended and shuts down for a capture. */
const captureGraceSeconds = 60

/** Asks the guest to shut down. After the grace period runs `tart stop`, which is like pulling the plug. */
export async function endProcess(tart: Tart, folder: string, { run, process }: RunningTart, options: StopOptions) {
  await recordEnding(writeRun(folder, { ...run, process, isEnding: true }))
  failpoint('apple-ending')
  if (options.graceSeconds > 0 && !options.signal?.aborted) {
    await askToEnd(tart, folder, { run, process }, options.signal)
    if (await endsWithin(process, options)) return
  }
  await tart.command(folder, ['stop', run.name, '--timeout', '5'], { timeoutMs: 20_000 }).catch(() => undefined)
  if (!(await waitForEnd(process, endMs))) await endBySignals(process, ['SIGKILL'])
}

/** SIGUSR2 is the power button. Linux shuts down; macOS asks its user, so it is shut down from inside. */
async function askToEnd(
  tart: Tart,
  folder: string,
  { run, process }: RunningTart,
  signal?: AbortSignal,
): Promise<void> {
  const isMac = isSuspendable(await readTartConfig(folder, run))
  const words = ['exec', run.name, 'sudo', '-n', 'shutdown', '-h', 'now']
  const isTold = isMac && (await succeeds(tart.command(folder, words, { signal, timeoutMs: askMs })))
  if (!isTold) await kill(process, 'SIGUSR2')
}

async function endsWithin(process: ProcessId, { graceSeconds, signal }: StopOptions): Promise<boolean> {
  const untilMs = performance.now() + graceSeconds * 1_000
  while (performance.now() < untilMs && !signal?.aborted) if (await waitForEnd(process, lookEveryMs)) return true
  return false
}

/** Makes the guest write its page cache, if it has tart's guest agent. */
export async function flushGuest(tart: Tart, folder: string, name: string, signal: AbortSignal): Promise<void> {
  await tart.command(folder, ['exec', name, 'sync'], { signal, timeoutMs: flushMs }).catch(() => undefined)
}

/** Throws if the memory of the VM does not fit on the disk: tart would end a VM that it cannot suspend. */
export async function requireRoomForMemory(folder: string, run: Pick<AppleRun, 'name'>): Promise<void> {
  const { memorySize = 0 } = await readTartConfig(folder, run)
  const { bavail, bsize } = await fs.statfs(folder)
  if (bavail * bsize < memorySize)
    throw new Error(
      `the disk of the node has ${gibText(bavail * bsize)} free, and suspending the VM needs ${gibText(memorySize)} for its ` +
        'memory. The VM keeps running; free space and try again',
    )
}

const gibText = (bytes: number): string => `${Math.round((bytes / 2 ** 30) * 10) / 10} GiB`

const failedToSuspend = /Failed to suspend the VM: (.*)/

/** Why tart, which prints it to its log and ends the VM, did not suspend it. */
export async function whyNotSuspended(folder: string): Promise<string> {
  const said = await lastOfLog(folder)
  return failedToSuspend.exec(said)?.[1] ?? said
}

/**
 * Suspends the VM, or shuts it down if `how` is `stop` or suspending fails. Afterwards no process has its files open.
 * Returns whether it is suspended.
 */
export async function pauseForCopy(
  tart: Tart,
  folder: string,
  living: RunningTart,
  how: 'suspend' | 'stop',
): Promise<boolean> {
  const { run, process } = living
  const isAsked = how === 'suspend' && (await succeeds(tart.command(folder, ['suspend', run.name])))
  if (!isAsked || !(await waitForEnd(process, suspendMs))) {
    await endProcess(tart, folder, living, { graceSeconds: captureGraceSeconds })
    await writeRun(folder, run)
  }
  await waitForSupervisor(folder, run)
  // What was saved until then does not fit the disk.
  if (failedToSuspend.test(await lastOfLog(folder))) await fs.rm(tartFile(folder, run, 'state'), { force: true })
  return isSuspended(folder, run)
}
