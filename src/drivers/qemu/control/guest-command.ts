// Runs a command in a guest by QEMU's `guest-exec`, and returns whether it succeeded.
import { setTimeout as sleep } from 'node:timers/promises'
import type { GuestAgent } from './guest-agent.ts'

/** `answerMs` is for the agent to answer, `commandMs` for the command to end, which has to be polled. */
const limits = { answerMs: 10_000, commandMs: 60_000, pollMs: 200 }

/** The guest's shell reads the command from standard input, so it appears in no argument. */
export async function passesIn(
  agent: GuestAgent,
  command: string,
  signal: AbortSignal,
  { answerMs, commandMs, pollMs } = limits,
): Promise<boolean> {
  const input = Buffer.from(`${command}\n`).toString('base64')
  const begun = await agent.ask('guest-exec', { path: '/bin/sh', 'input-data': input }, answerMs)
  const { pid } = Object(begun?.return) as { readonly pid?: unknown }
  if (typeof pid !== 'number') return false
  for (const untilMs = performance.now() + commandMs; performance.now() < untilMs; ) {
    await sleep(pollMs, undefined, { signal, ref: false }).catch(() => undefined)
    if (signal.aborted) return false
    const answer = await agent.ask('guest-exec-status', { pid }, answerMs)
    const { exited, exitcode } = Object(answer?.return) as { readonly exited?: unknown; readonly exitcode?: unknown }
    if (!answer || 'error' in answer) return false
    if (exited === true) return exitcode === 0
  }
  return false
}
