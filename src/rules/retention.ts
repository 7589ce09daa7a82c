// How long things are kept after they end, by stored times. If the clock jumps back they are kept longer.

const keptSeconds = {
  /** The stored answer to a request with an Idempotency-Key. */
  answer: 24 * 3_600,
  /** A finished push job (docs/spec.md R40). */
  pushJob: 3_600,
  /** An interrupted upload, after its last byte. */
  upload: 24 * 3_600,
  /** The record of a dead server, whose folder may have the only copy of some content. */
  server: 30 * 24 * 3_600,
  event: 30 * 24 * 3_600,
} as const

export const hasExpired = (kind: keyof typeof keptSeconds, endedAt: string, now: string): boolean =>
  (Date.parse(now) - Date.parse(endedAt)) / 1_000 > keptSeconds[kind]

/** What is older has expired. */
export const keptSince = (kind: keyof typeof keptSeconds, now: Date): Date =>
  new Date(now.getTime() - keptSeconds[kind] * 1_000)

export const expiryOf = (kind: keyof typeof keptSeconds, endedAt: string): Date =>
  new Date(Date.parse(endedAt) + keptSeconds[kind] * 1_000)

/** The limit for each share of the events (docs/spec.md R52). */
export const keptEvents = 10_000

/** The limit for each caller. */
export const keptAnswers = { maxRecords: 10_000, maxBytes: 16 * 1_048_576 }

/** After this time without a response of the node, a save, commit or push has failed. */
export const lostNodeSeconds = 3_600

/**
 * Content that nothing refers to is deleted when it is older, because a record that refers to it may be about to be
 * written. Together with `contentCheckMs` it is deleted within ten minutes.
 */
export const contentGraceMs = 7 * 60_000
export const contentCheckMs = 2 * 60_000
