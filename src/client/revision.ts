// The latest revision that a caller has seen. It is sent with every request, so that no server answers from older data.

export interface Revision {
  latest(): string | undefined
  /** Ignores any revision that is not later. */
  saw(revision: string | undefined): void
}

/** Calls `keep` with each later revision. */
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

/** Compares decimal numbers in text form. */
const isLater = (one: string, other: string): boolean =>
  one.length > other.length || (one.length === other.length && one > other)
