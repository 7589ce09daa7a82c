// One key that signs tokens, as its record says: from when it signs, and until when what it has signed may count.
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { SigningKeyRecord } from '../store/records/collections.ts'
import { compareRevs, type Entry, type Rev } from '../store/store.ts'
import type { Secrets } from './secrets.ts'

export interface SigningKey {
  readonly kid: string
  /** Of its record. */
  readonly key: string
  readonly rev: Rev
  readonly pem: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly signsFromMs: number
  /** Tokens that outlive `shortTokenMs` end by then. */
  readonly tokensUntilMs: number
}

/** In place of a time: some token of the key never ends. */
export const forEver = 'never'
/** Tokens of users, agents and hosts that join are good for less; those that are good for longer are written down. */
export const shortTokenMs = 24 * 3_600_000
/** Beyond the end of its tokens: clocks of servers differ. */
const skewMs = 10 * 60_000

type Records = readonly Entry<SigningKeyRecord>[]

/**
 * In the order in which they sign. `before` are those that are known: of a record that does not open (it is sealed under a
 * master key that this server does not have yet) the key stays as it was, and `failed` is called. Without it, it throws.
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
  const tokensUntilMs = tokensUntil === forEver ? Number.POSITIVE_INFINITY : Date.parse(tokensUntil ?? createdAt)
  return { kid, key, rev, pem, privateKey, publicKey, signsFromMs: Date.parse(signsFrom), tokensUntilMs }
}

/** When the last token of a key ends; undefined for the one that signs, or will. `keys` are in order. */
export function endOf({ kid, tokensUntilMs }: SigningKey, keys: readonly SigningKey[]): number | undefined {
  const next = keys[keys.findIndex((key) => key.kid === kid) + 1]
  return next && Math.max(next.signsFromMs + shortTokenMs, tokensUntilMs)
}

export const hasEnded = (endMs: number | undefined, nowMs: number): boolean =>
  endMs !== undefined && endMs + skewMs < nowMs
