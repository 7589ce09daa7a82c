// Chooses what to evict from a node's image cache. Chunks are evicted first, because disks made from them stay usable;
// then the least recently used disks.

export interface Evictable {
  readonly kind: 'chunks' | 'disk'
  readonly key: string
  readonly bytes: number
  /** When it was last used; 0 for chunks that no disk here is made from. */
  readonly usedMs: number
}

const ranks: Readonly<Record<Evictable['kind'], number>> = { chunks: 0, disk: 1 }

/**
 * Chooses the fewest candidates that free so many bytes, in order of eviction. Returns undefined if all of them would
 * not suffice, because evicting them would then help no one.
 */
export function chooseEvictions<E extends Evictable>(candidates: readonly E[], bytes: number): E[] | undefined {
  const chosen: E[] = []
  let freed = 0
  for (const each of candidates.toSorted(byPlace)) {
    if (freed >= bytes) break
    if (each.bytes === 0) continue
    chosen.push(each)
    freed += each.bytes
  }
  return freed >= bytes ? chosen : undefined
}

const byPlace = (one: Evictable, other: Evictable): number =>
  ranks[one.kind] - ranks[other.kind] || one.usedMs - other.usedMs || (one.key < other.key ? -1 : 1)
