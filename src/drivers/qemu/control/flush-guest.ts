// Asks a guest to write what it holds back to its disk, by the protocol of QEMU's guest agent, before the disk is captured.
// Freeze and thaw are sent as one message: whoever dies here, no guest is left with file systems that nobody thaws.
import { GuestAgent } from './guest-agent.ts'

/**
 * `unheard`: nobody in the guest answers. `stuck`: it was asked to freeze its file systems and has not said since that they
 * are thawed; memory of such a guest is not worth having.
 */
type Flushed = 'flushed' | 'unheard' | 'stuck'

interface Limits {
  /** For whoever listens to say so. */
  readonly answerMs: number
  /** For all that was not written yet to be on the disk. */
  readonly flushMs: number
}
const limits: Limits = { answerMs: 2_000, flushMs: 10_000 }
const thawTries = 3

/** The guest runs. Never longer than its time limits. One that is stuck has lost the connection. */
export async function flushGuest(agent: GuestAgent, runtime: string, { answerMs, flushMs } = limits): Promise<Flushed> {
  if (!(await agent.synchronize(answerMs))) return 'unheard'
  agent.send('guest-fsfreeze-freeze', 'guest-fsfreeze-thaw')
  const frozen = await agent.answer(flushMs)
  if (frozen && (await agent.answer(answerMs))) return 'return' in frozen ? 'flushed' : 'unheard'
  agent[Symbol.dispose]()
  // Not by the caller's signal: it must not be left so.
  for (let tries = 0; tries < thawTries; tries++) {
    using another = new GuestAgent(runtime)
    if (!(await another.synchronize(answerMs))) continue
    another.send('guest-fsfreeze-thaw')
    if ('return' in ((await another.answer(answerMs)) ?? {})) return 'flushed'
  }
  return 'stuck'
}
