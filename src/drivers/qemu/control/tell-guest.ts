// Tells a guest that has gone on from memory which VM it is now, and waits until it says that it is: its name, its clock, its
// network. What it does not confirm is put into words for whoever deployed it.
import { randomBytes } from 'node:crypto'
import type { GuestIdentity } from '../network/identity.ts'
import { type GuestAgent, type GuestAgentReply, isListening } from './guest-agent.ts'
import type { Qmp } from './qmp.ts'

/** What a guest confirms, and how people call it. */
const parts = { name: 'name', clock: 'clock', network: 'network addresses' } as const
type Part = keyof typeof parts
const allParts = Object.keys(parts) as Part[]

/** An answer that took longer than `freshMs` leaves the clock so much behind: then the guest is told again. */
const limits = { allMs: 5_000, freshMs: 1_000 }

/**
 * The guest runs, and the connection was there before it did. Undefined: it has confirmed all. One that had not opened the
 * port when it was saved is not waited for.
 */
export async function tellGuest(
  qmp: Qmp,
  agent: GuestAgent,
  identity: GuestIdentity,
  { allMs, freshMs } = limits,
): Promise<string | undefined> {
  if (!(await isListening(qmp))) return noteOf(allParts, 'no agent in it was listening when it was saved')
  const untilMs = performance.now() + allMs
  const leftMs = () => untilMs - performance.now()
  const confirmed = new Set<string>()
  let why = ''
  let isStale = true
  while (isStale && leftMs() > 0) {
    const sentMs = performance.now()
    const answer = await agent.ask('svc3-identity', wordsOf(identity), leftMs())
    if (answer && 'error' in answer) {
      why = 'its agent does not know svc3-identity'
      // QEMU's own agent can do that much.
      const set = await agent.ask('guest-set-time', { time: Date.now() * 1_000_000 }, leftMs())
      if (set && 'return' in set) confirmed.add('clock')
    } else {
      why = answer ? 'it could not set them' : `it did not confirm new ones within ${allMs / 1_000} s`
      for (const part of answer ? listOf(answer) : []) confirmed.add(part)
    }
    isStale = performance.now() - sentMs > freshMs
    if (isStale) confirmed.delete('clock')
  }
  const missing = allParts.filter((part) => !confirmed.has(part))
  return missing.length === 0 ? undefined : noteOf(missing, why)
}

/** Text without anything to escape: a shell reads it. */
const wordsOf = (identity: GuestIdentity) => ({
  ...identity,
  time: (Date.now() / 1_000).toFixed(3),
  // Two guests of one memory would have the same random numbers.
  seed: randomBytes(32).toString('hex'),
})

const listOf = (answer: GuestAgentReply): readonly string[] =>
  Array.isArray(answer.return) ? answer.return.map((part) => String(part)) : []

function noteOf(missing: readonly Part[], why: string): string {
  const words = missing.map((part) => parts[part])
  const last = words.pop()
  const list = words.length > 0 ? `${words.join(', ')} and ${last}` : last
  return `The guest may still have the ${list} of the saved VM: ${why}. Set them in the guest, or deploy with --cold`
}
