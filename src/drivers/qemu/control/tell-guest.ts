// Tells a guest that resumed from memory its new identity, and waits until it confirms name, clock and network. What it
// does not confirm becomes a note for the user.
import { randomBytes } from 'node:crypto'
import type { GuestIdentity } from '../network/identity.ts'
import { type GuestAgent, type GuestAgentReply, isListening } from './guest-agent.ts'
import type { Qmp } from './qmp.ts'

/** What a guest confirms, and the words for users. */
const parts = { name: 'name', clock: 'clock', network: 'network addresses' } as const
type Part = keyof typeof parts
const allParts = Object.keys(parts) as Part[]

/** An answer that takes longer than `freshMs` leaves the clock late by as much, so the guest is told again. */
const limits = { allMs: 5_000, freshMs: 1_000 }

/**
 * Returns a note for users; undefined if the guest confirmed everything. The guest must be running; if it was resumed,
 * `agent` must have connected before. Does not wait for a guest in which no program has opened the port.
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
      // QEMU's own guest agent supports this much.
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

/** Returns values that need no escaping, because a shell in the guest reads them. */
const wordsOf = (identity: GuestIdentity) => ({
  ...identity,
  time: (Date.now() / 1_000).toFixed(3),
  // Otherwise two guests of one memory would have the same random numbers.
  seed: randomBytes(32).toString('hex'),
})

const listOf = (answer: GuestAgentReply): readonly string[] =>
  Array.isArray(answer.return) ? answer.return.filter((part) => typeof part === 'string') : []

function noteOf(missing: readonly Part[], why: string): string {
  const words = missing.map((part) => parts[part])
  const last = words.pop()
  const list = words.length > 0 ? `${words.join(', ')} and ${last}` : last
  return `The guest may still have the ${list} of the saved VM: ${why}. Set them in the guest, or deploy with --cold`
}
