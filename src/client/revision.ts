// The latest revision that a caller was told: sent with every request, so that no server answers with less.

export interface Revision {
  latest(): string | undefined
  /** Anything but a later one is passed over. */
  saw(revision: string | undefined): void
}

/** `keep` hears of each later one. */
export function createRevision(known?: string, keep: (revision: string) => void = () => undefined): Revision {
  let latest = known
  return {
    latest: () => latest,
    saw(revision) {
      if (revision === undefined || !/^\d{1,15}$/.test(revision)) return
      if (latest !== undefined && !isLater(revision, latest)) return
      latest = revision
      keep(revision)
    },
  }
}

/** Decimal numbers as text. */
const isLater = (one: string, other: string): boolean =>
  one.length > other.length || (one.length === other.length && one > other)
