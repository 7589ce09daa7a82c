// Asks a guest to flush its file systems before its disk is captured. Freeze and thaw are sent as one message, so that no
// crash leaves a guest frozen.
import { GuestAgent } from './guest-agent.ts'

/** `unheard`: no agent answered, or it cannot freeze. `stuck`: no thaw was confirmed, so the memory is useless. */
type Flushed = 'flushed' | 'unheard' | 'stuck'

/** `answerMs` is for the agent to answer, `flushMs` for the guest to write its page cache. */
const limits = { answerMs: 2_000, flushMs: 10_000 }
const thawTries = 3

/** The guest must be running. Closes the connection of `agent` if the guest does not confirm the thaw in time. */
export async function flushGuest(agent: GuestAgent, runtime: string, { answerMs, flushMs } = limits): Promise<Flushed> {
  if (!(await agent.synchronize(answerMs))) return 'unheard'
  agent.send('guest-fsfreeze-freeze', 'guest-fsfreeze-thaw')
  const frozen = await agent.answer(flushMs)
  if (frozen && (await agent.answer(answerMs))) return 'return' in frozen ? 'flushed' : 'unheard'
  agent[Symbol.dispose]()
  // Independent of the caller's signal: the guest must not stay frozen.
  for (let tries = 0; tries < thawTries; tries++) {
    using another = new GuestAgent(runtime)
    if (!(await another.synchronize(answerMs))) continue
    another.send('guest-fsfreeze-thaw')
    if ('return' in ((await another.answer(answerMs)) ?? {})) return 'flushed'
  }
  return 'stuck'
}
