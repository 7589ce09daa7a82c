// How long things are kept after they end. Judged by stored times; a clock that jumped back keeps them, never negative.

const keptSeconds = {
  /** The first answer to a request with an Idempotency-Key. */
  answer: 24 * 3_600,
  /** The status of a push job can be seen for an hour after its end (docs/spec.md R40). */
  pushJob: 3_600,
  /** An upload that was cut off, after its last byte. */
  upload: 24 * 3_600,
  /** A server that is gone: what only its folder has is waited for as long. */
  server: 30 * 24 * 3_600,
} as const

export const hasExpired = (kind: keyof typeof keptSeconds, endedAt: string, now: string): boolean =>
  (Date.parse(now) - Date.parse(endedAt)) / 1_000 > keptSeconds[kind]

/** When something that ended is gone. */
export const expiryOf = (kind: keyof typeof keptSeconds, endedAt: string): Date =>
  new Date(Date.parse(endedAt) + keptSeconds[kind] * 1_000)

/** So many events are kept in the whole cluster. */
export const keptEvents = 20_000

/** So many answers to requests with an Idempotency-Key are kept at most, whoever sends them. */
export const keptAnswers = 100_000

/** A save, a commit or a push waits so long for a node that does not answer; then it has failed. */
export const lostNodeSeconds = 3_600

/**
 * Content of images that nothing refers to is freed when it is older than this: nobody is about to refer to it. With the
 * time between two looks it is gone within ten minutes.
 */
export const contentGraceMs = 7 * 60_000
export const contentCheckMs = 2 * 60_000
