// ID tokens that were exchanged: each is good for one login. Kept by hash until they run out. For a few
// seconds it may come again: an answer was lost, or the provider issued two within a second, which are then the same.
import { createHash } from 'node:crypto'
import type { Collection } from '../../store/collection.ts'
import type { UsedRecord } from '../../store/records/server-records.ts'
import { ignoreLost, isFault } from '../../store/store.ts'

export interface UsedTokens {
  /** False when it was taken before. */
  take(idToken: string, untilMs: number, nowMs: number): boolean | Promise<boolean>
  /** It brought nothing after all: it may be tried again. */
  giveBack(idToken: string): void | Promise<void>
}

/** Kept in the store: whichever server a token comes to, and after every restart. */
export function storedUsedTokens(used: Collection<UsedRecord>): UsedTokens {
  const idOf = (idToken: string): string => `id-token-${keyOf(idToken)}`
  return {
    async take(idToken, untilMs, nowMs) {
      const [firstAt, expiresAt] = [nowMs, untilMs].map((each) => new Date(each).toISOString()) as [string, string]
      try {
        await used.create('', idOf(idToken), { firstAt, expiresAt })
        return true
      } catch (error) {
        if (!isFault(error, 'AlreadyExists')) throw error
        const seen = used.get('', idOf(idToken))?.value
        return seen !== undefined && nowMs - Date.parse(seen.firstAt) < repetitionMs
      }
    },
    async giveBack(idToken) {
      const entry = used.get('', idOf(idToken))
      if (entry) await used.delete(entry).catch(ignoreLost)
    },
  }
}

/** Each is a login that really happened: so many within minutes are out of reach for one who repeats a single one. */
const maxKept = 20_000
const repetitionMs = 10_000

export function createUsedTokens(max = maxKept) {
  const known = new Map<string, { readonly firstMs: number; readonly untilMs: number }>()
  return {
    take(idToken: string, untilMs: number, nowMs: number): boolean {
      const key = keyOf(idToken)
      const seen = known.get(key)
      if (seen && seen.untilMs > nowMs) return nowMs - seen.firstMs < repetitionMs
      if (known.size >= max) for (const [each, { untilMs: endMs }] of known) if (endMs <= nowMs) known.delete(each)
      if (known.size >= max) known.delete(known.keys().next().value as string)
      known.set(key, { firstMs: nowMs, untilMs })
      return true
    },
    giveBack: (idToken: string): void => void known.delete(keyOf(idToken)),
  } satisfies UsedTokens
}

/** Without the signature, which can be written in several ways. */
const keyOf = (idToken: string): string =>
  createHash('sha256')
    .update(idToken.slice(0, idToken.lastIndexOf('.')))
    .digest('base64url')
