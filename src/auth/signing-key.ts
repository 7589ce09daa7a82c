// A key that signs tokens: from when on it signs, and when the last token that it signed expires.
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { SigningKeyRecord } from '../store/records/collections.ts'
import { compareRevs, type Entry, type Rev } from '../store/store.ts'
import type { Secrets } from './secrets.ts'

export interface SigningKey {
  readonly kid: string
  /** The key of its record. */
  readonly key: string
  readonly rev: Rev
  readonly pem: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly signsFromMs: number
  /** When the last token that is valid for longer than `shortTokenMs` expires. */
  readonly tokensUntilMs: number
}

/** In place of a time, if some token of the key never expires. */
export const neverExpires = 'never'
/** Most tokens are valid for less than this. Those that are valid for longer are noted in the record of their key. */
export const shortTokenMs = 24 * 3_600_000
/** A key is kept for this long after its last token, because clocks of servers differ. */
const skewMs = 10 * 60_000

type Records = readonly Entry<SigningKeyRecord>[]

/**
 * Returns keys in the order in which they sign. If a record does not open, for example because this server does not have its
 * master key yet, `failed` is called and the key of `before` is used. Without `failed`, the error is thrown.
 */
export function openKeys(
  records: Records,
  secrets: Secrets,
  before: readonly SigningKey[] = [],
  failed?: (key: string, error: unknown) => void,
): readonly SigningKey[] {
  const opened = records.flatMap((entry): SigningKey | readonly SigningKey[] => {
    const known = before.find(({ key, kid }) => key === entry.key && kid === entry.value.kid)
    if (known && compareRevs(known.rev, entry.rev) === 0) return known
    try {
      return openKey(entry, secrets)
    } catch (error) {
      if (!failed) throw error
      failed(entry.key, error)
      return known ?? []
    }
  })
  return opened.sort((a, b) => a.signsFromMs - b.signsFromMs || (a.kid < b.kid ? -1 : 1))
}

function openKey({ key, rev, value }: Entry<SigningKeyRecord>, secrets: Secrets): SigningKey {
  const { kid, createdAt, signsFrom = createdAt, tokensUntil } = value
  const pem = secrets.open(key, value)
  const privateKey = createPrivateKey(pem)
  const publicKey = createPublicKey(privateKey)
  const tokensUntilMs = tokensUntil === neverExpires ? Number.POSITIVE_INFINITY : Date.parse(tokensUntil ?? createdAt)
  return { kid, key, rev, pem, privateKey, publicKey, signsFromMs: Date.parse(signsFrom), tokensUntilMs }
}

/** When the last token of a key expires; undefined for keys that sign now or later. `keys` are in order. */
export function endOf({ kid, tokensUntilMs }: SigningKey, keys: readonly SigningKey[]): number | undefined {
  const next = keys[keys.findIndex((key) => key.kid === kid) + 1]
  return next && Math.max(next.signsFromMs + shortTokenMs, tokensUntilMs)
}

export const hasEnded = (endMs: number | undefined, nowMs: number): boolean =>
  endMs !== undefined && endMs + skewMs < nowMs
