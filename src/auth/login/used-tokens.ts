// Exchanged ID tokens, each of which is valid for one login. Their hashes are in the store until the tokens expire, so that
// this holds on every server and after restarts. For a few seconds a token may be used again, because a response may be lost,
// and because a provider may issue two identical tokens within a second.
import { createHash } from 'node:crypto'
import type { Collection } from '../../store/collection.ts'
import type { UsedRecord } from '../../store/records/server-records.ts'
import { ignoreLost, isFault } from '../../store/store.ts'

export interface UsedTokens {
  take(idToken: string, untilMs: number, nowMs: number): Promise<'first' | 'repeated' | 'refused'>
  /** Allows another use after the first one failed. */
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
        return 'first'
      } catch (error) {
        if (!isFault(error, 'AlreadyExists')) throw error
        const seen = used.get('', idOf(idToken))?.value
        return seen && nowMs - Date.parse(seen.firstAt) < repetitionMs ? 'repeated' : 'refused'
      }
    },
    async giveBack(idToken) {
      const entry = used.get('', idOf(idToken))
      if (entry) await used.delete(entry).catch(ignoreLost)
    },
  }
}

/** A hash of the token without its signature, which has several valid encodings. */
const keyOf = (idToken: string): string =>
  createHash('sha256')
    .update(idToken.slice(0, idToken.lastIndexOf('.')))
    .digest('base64url')
