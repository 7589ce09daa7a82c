// ID tokens that were exchanged: each is good for one token of ours. Kept in memory, by hash, until they run out.
import { createHash } from 'node:crypto'

export interface UsedTokens {
  /** False when it was taken before. */
  take(idToken: string, untilMs: number, nowMs: number): boolean
  /** It brought nothing after all: it may be tried again. */
  giveBack(idToken: string): void
}

/** Each is a login that really happened: so many within minutes are out of reach for one who repeats a single one. */
const maxKept = 20_000

export function createUsedTokens(max = maxKept): UsedTokens {
  const untilMsOf = new Map<string, number>()
  return {
    take(idToken, untilMs, nowMs) {
      const key = keyOf(idToken)
      const known = untilMsOf.get(key)
      if (known !== undefined && known > nowMs) return false
      if (untilMsOf.size >= max) for (const [each, endMs] of untilMsOf) if (endMs <= nowMs) untilMsOf.delete(each)
      if (untilMsOf.size >= max) untilMsOf.delete(untilMsOf.keys().next().value as string)
      untilMsOf.set(key, untilMs)
      return true
    },
    giveBack: (idToken) => void untilMsOf.delete(keyOf(idToken)),
  }
}

/** Without the signature, which can be written in several ways. */
const keyOf = (idToken: string): string =>
  createHash('sha256')
    .update(idToken.slice(0, idToken.lastIndexOf('.')))
    .digest('base64url')
