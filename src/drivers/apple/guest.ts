// Runs scripts as root in a guest, through tart's guest agent. The image has to have the agent, and its user has to be
// allowed to use sudo without a password, as in the public images of tart.
import { ExecError } from '../../platform/exec.ts'
import { reasonOf } from '../../platform/reason.ts'
import { wait } from '../../platform/retry.ts'
import type { Tart } from './tart.ts'

/** Until a guest that has booted before has its agent. */
const agentMs = 120_000
/** tart itself has no time limit. */
const probeMs = 10_000
const pauseMs = 2_000
const growMs = 600_000

/** Waits until the guest has booted as far as its agent. */
export async function waitForAgent(
  tart: Tart,
  folder: string,
  name: string,
  signal: AbortSignal,
  timeoutMs = agentMs,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    signal.throwIfAborted()
    try {
      await tart.command(folder, ['exec', name, 'sudo', '-n', 'true'], { signal, timeoutMs: probeMs })
      return
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ExecError && /sudo: /.test(error.stderr))
        throw new Error("the user of tart's guest agent may not use sudo without a password in the guest")
      if (performance.now() > endMs)
        throw new Error(`tart's guest agent did not respond within ${timeoutMs / 1_000} s (${reasonOf(error)})`)
    }
    await wait(pauseMs, signal)
  }
}

interface GuestScript {
  /** Goes to standard input, because it may be secret. */
  readonly script: string
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

export async function runInGuest(
  tart: Tart,
  folder: string,
  name: string,
  { script, signal, timeoutMs = growMs }: GuestScript,
): Promise<string> {
  const words = ['exec', '-i', name, 'sudo', '-n', 'sh', '-s']
  return (await tart.command(folder, words, { signal, timeoutMs, input: script })).stdout
}
