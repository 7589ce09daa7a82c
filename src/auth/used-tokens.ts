// ID tokens that were exchanged: each is good for one login. Kept in memory, by hash, until they run out. For a few
// seconds it may come again: an answer was lost, or the provider issued two within a second, which are then the same.
import { createHash } from 'node:crypto'

export interface UsedTokens {
  /** False when it was taken before. */
  take(idToken: string, untilMs: number, nowMs: number): boolean
  /** It brought nothing after all: it may be tried again. */
  giveBack(idToken: string): void
}

/** Each is a login that really happened: so many within minutes are out of reach for one who repeats a single one. */
const maxKept = 20_000
const repetitionMs = 10_000

export function createUsedTokens(max = maxKept): UsedTokens {
  const known = new Map<string, { readonly firstMs: number; readonly untilMs: number }>()
  return {
    take(idToken, untilMs, nowMs) {
      const key = keyOf(idToken)
      const seen = known.get(key)
      if (seen && seen.untilMs > nowMs) return nowMs - seen.firstMs < repetitionMs
      if (known.size >= max) for (const [each, { untilMs: endMs }] of known) if (endMs <= nowMs) known.delete(each)
      if (known.size >= max) known.delete(known.keys().next().value as string)
      known.set(key, { firstMs: nowMs, untilMs })
      return true
    },
    giveBack: (idToken) => void known.delete(keyOf(idToken)),
  }
}

/** Without the signature, which can be written in several ways. */
const keyOf = (idToken: string): string =>
  createHash('sha256')
    .update(idToken.slice(0, idToken.lastIndexOf('.')))
    .digest('base64url')
