// ID tokens that were exchanged: each is good for one login. Kept by hash until they run out, in the store: whichever
// server a token comes to, and after every restart. For a few seconds it may come again: an answer was lost, or the
// provider issued two within a second, which are then the same.
import { createHash } from 'node:crypto'
import type { Collection } from '../../store/collection.ts'
import type { UsedRecord } from '../../store/records/server-records.ts'
import { ignoreLost, isFault } from '../../store/store.ts'

export interface UsedTokens {
  /** False when it was taken before. */
  take(idToken: string, untilMs: number, nowMs: number): Promise<boolean>
  /** It brought nothing after all: it may be tried again. */
  giveBack(idToken: string): Promise<void>
}

const repetitionMs = 10_000

export function createUsedTokens(used: Collection<UsedRecord>): UsedTokens {
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

/** Without the signature, which can be written in several ways. */
const keyOf = (idToken: string): string =>
  createHash('sha256')
    .update(idToken.slice(0, idToken.lastIndexOf('.')))
    .digest('base64url')
