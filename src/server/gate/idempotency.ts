// Idempotency-Key: a POST that is repeated with the same key within 24 hours gets the first answer, also after a crash
// or while the first request is still running. Each caller has their own keys.
import { createHmac } from 'node:crypto'
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { AnswerRecord, Collections } from '../../store/records/collections.ts'
import { isFault } from '../../store/store.ts'

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
  return { key, fingerprint, stamp: hash(key, fingerprint) }
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

/** Only refusals up to this size are stored, because a caller can cause many and each is kept for a day. */
const maxRefusalChars = 65_536

export class Idempotency {
  readonly #services: IdempotencyServices
  readonly #underWay = new Map<string, { readonly fingerprint: string; readonly answer: Promise<Answered> }>()

  constructor(services: IdempotencyServices) {
    this.#services = services
  }

  /** Runs the request, or returns the stored answer. Refusals are stored too, internal errors are not. */
  async once({ key, fingerprint }: RequestKey, run: () => Promise<Answered>): Promise<Answered> {
    const earlier = this.#underWay.get(key) ?? this.#stored(key)
    if (earlier && earlier.fingerprint !== fingerprint) throw reused()
    if (earlier) return earlier.answer
    const answer = run().then(async (answered) => {
      await this.#keep(key, fingerprint, answered)
      return answered
    })
    this.#underWay.set(key, { fingerprint, answer })
    try {
      return await answer
    } finally {
      this.#underWay.delete(key)
    }
  }

  #stored(key: string): { fingerprint: string; answer: Promise<Answered> } | undefined {
    const record = this.#services.collections.answers.get('', key)?.value
    return (
      record && {
        fingerprint: record.fingerprint,
        answer: Promise.resolve({ status: record.status, body: record.body }),
      }
    )
  }

  async #keep(key: string, fingerprint: string, { status, body }: Answered): Promise<void> {
    // A large refusal is not stored. It changed nothing, so a repeated request is judged again.
    if (status >= 500 || (status >= 400 && body.length > maxRefusalChars)) return
    const record: AnswerRecord = { fingerprint, status, body, createdAt: timestamp(this.#services.clock.now()) }
    try {
      await this.#services.collections.answers.create('', key, record)
    } catch (error) {
      // The request was carried out and its record has the stamp, so the answer is sent even if it cannot be stored.
      if (!isFault(error, 'AlreadyExists'))
        this.#services.log.warn('could not store an answer for retries', { problem: String(error) })
    }
  }
}

const reused = (): ApiError =>
  new ApiError('Invalid', 'This Idempotency-Key was used for another request', {
    hint: 'Use a new key for each request',
  })
