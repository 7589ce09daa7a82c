// What leaves a node's cache of images when there is no room: the pure choice. Chunks go first, for the disks that were
// made of them stay good without; then disks, those first that were used longest ago.

export interface Evictable {
  readonly kind: 'chunks' | 'disk'
  readonly key: string
  readonly bytes: number
  /** When it was last used; 0 for chunks that no disk here is made of. */
  readonly usedMs: number
}

const ranks: Readonly<Record<Evictable['kind'], number>> = { chunks: 0, disk: 1 }

/**
 * In the order in which they go, as few as free so many bytes. Undefined when all of them would not: then nothing should
 * go, for nobody would have anything of it.
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
