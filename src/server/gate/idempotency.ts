// Idempotency-Key: a POST that is repeated with the same key within 24 hours gets the first answer, also after a crash
// or while the first request is still running. A refusal is not stored: it changed nothing, and a repeated request is
// judged again. Each caller has their own keys, and a limited number of stored answers, of which the oldest are deleted.
import { createHmac } from 'node:crypto'
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { keptAnswers } from '../../rules/retention.ts'
import type { AnswerRecord, Collections } from '../../store/records/collections.ts'
import { ignoreLost, isFault } from '../../store/store.ts'

export interface Answered {
  readonly status: number
  readonly body: string
}

interface Keyed {
  readonly caller: string
  readonly method: string
  readonly operation: string
  readonly params: unknown
  readonly header: string | string[] | undefined
  readonly body: unknown
}

interface RequestKey {
  /** The hash of the caller, who may store a limited number of answers. */
  readonly caller: string
  readonly key: string
  /** Distinguishes a repeated request from another request with the same key. */
  readonly fingerprint: string
  /** Stored in the record that the request creates, to recognise a repeated request after a crash. */
  readonly stamp: string
}

/**
 * `secret` keys the hashes: bodies contain passwords, which could be guessed from the plain hashes of a stolen store.
 */
export function requestKeyOf(
  secret: Buffer,
  { caller, method, operation, params, header, body }: Keyed,
): RequestKey | undefined {
  if (header === undefined || method !== 'POST') return undefined
  if (typeof header !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(header)) {
    const message = 'Idempotency-Key must be 1 to 255 visible ASCII characters'
    throw badRequest([invalidField('Idempotency-Key', message)], 'Use a UUID')
  }
  const hash = (...parts: readonly string[]): string =>
    createHmac('sha256', secret).update(JSON.stringify(parts)).digest('base64url')
  const key = hash(caller, operation, canonical(params), header)
  const fingerprint = hash(key, canonical(body))
  return { caller: hash(caller), key, fingerprint, stamp: hash(key, fingerprint) }
}

/** Canonical JSON: the same text for equal values, regardless of the order of fields. */
function canonical(value: unknown): string {
  const sorted = (_: string, each: unknown): unknown =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each
  return JSON.stringify(value ?? null, sorted)
}

export interface IdempotencyServices {
  readonly collections: Pick<Collections, 'answers'>
  readonly clock: Clock
  readonly log: Log
}

export class Idempotency {
  readonly #services: IdempotencyServices
  readonly #underWay = new Map<string, { readonly fingerprint: string; readonly answer: Promise<Answered> }>()
  readonly #trimming = new Set<string>()

  constructor(services: IdempotencyServices) {
    this.#services = services
  }

  /** Runs the request, or returns the stored answer. */
  async once({ caller, key, fingerprint }: RequestKey, run: () => Promise<Answered>): Promise<Answered> {
    const earlier = this.#underWay.get(key) ?? this.#stored(caller, key)
    if (earlier && earlier.fingerprint !== fingerprint) throw reused()
    if (earlier) return earlier.answer
    const answer = run().then(async (answered) => {
      await this.#keep(caller, key, fingerprint, answered)
      return answered
    })
    this.#underWay.set(key, { fingerprint, answer })
    try {
      return await answer
    } finally {
      this.#underWay.delete(key)
    }
  }

  #stored(caller: string, key: string): { fingerprint: string; answer: Promise<Answered> } | undefined {
    const { answers } = this.#services.collections
    const record = answers.get(caller, key)?.value
    return (
      record && {
        fingerprint: record.fingerprint,
        answer: Promise.resolve({ status: record.status, body: record.body }),
      }
    )
  }

  async #keep(caller: string, key: string, fingerprint: string, { status, body }: Answered): Promise<void> {
    const record: AnswerRecord = { fingerprint, status, body, createdAt: timestamp(this.#services.clock.now()) }
    try {
      await this.#services.collections.answers.create(caller, key, record)
      await this.#trim(caller)
    } catch (error) {
      // The request was carried out and its record has the stamp, so the answer is sent even if it cannot be stored.
      if (!isFault(error, 'AlreadyExists'))
        this.#services.log.warn('could not store an answer for retries', { problem: String(error) })
    }
  }

  /** Deletes the oldest answers of a caller who has too many, and an eighth more, so that this is rare. */
  async #trim(caller: string): Promise<void> {
    const { answers } = this.#services.collections
    const { maxRecords, maxBytes } = keptAnswers
    let { records, bytes } = answers.shares?.of(caller) ?? { records: 0, bytes: 0 }
    if ((records <= maxRecords && bytes <= maxBytes) || this.#trimming.has(caller)) return
    this.#trimming.add(caller)
    try {
      const surplus = answers
        .list(caller)
        .toSorted((a, b) => (a.value.createdAt < b.value.createdAt ? -1 : 1))
        .filter((entry) => {
          if (records <= maxRecords * (7 / 8) && bytes <= maxBytes * (7 / 8)) return false
          records -= 1
          bytes -= entry.bytes ?? 0
          return true
        })
      await Promise.all(surplus.map((entry) => answers.delete(entry).catch(ignoreLost)))
    } finally {
      this.#trimming.delete(caller)
    }
  }
}

const reused = (): ApiError =>
  new ApiError('Invalid', 'This Idempotency-Key was used for another request', {
    hint: 'Use a new key for each request',
  })
