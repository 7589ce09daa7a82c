// Content that this node is fetching now: other nodes that were sent here for it wait until it has come.

export interface Coming {
  /** Until `fetching` is over, whichever way. */
  add(digest: string, fetching: Promise<unknown>): void
  /** Whether it is being fetched. Resolves when it has come, or after so long. */
  wait(digest: string, maxMs: number): Promise<boolean>
}

export function createComing(): Coming {
  const underWay = new Map<string, Promise<unknown>>()
  return {
    add(digest, fetching) {
      const over = fetching
        .catch(() => undefined)
        .finally(() => {
          if (underWay.get(digest) === over) underWay.delete(digest)
        })
      underWay.set(digest, over)
    },
    async wait(digest, maxMs) {
      const over = underWay.get(digest)
      if (!over) return false
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, maxMs)
      await Promise.race([over, late.promise])
      clearTimeout(timer)
      return true
    },
  }
}
