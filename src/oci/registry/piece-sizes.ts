// How much registries take at once, as far as it was learnt the hard way: for the whole process, as each push opens its
// registry anew. Forgotten after a while, because whoever runs a registry may come to allow more.

export interface PieceSizes {
  /** What is known to work with this registry; undefined where nothing was refused lately. */
  of(registry: string): number | undefined
  /** More than this was refused, and this was taken. */
  learn(registry: string, bytes: number): void
}

const mostRegistries = 100
const keptMs = 3_600_000

export function createPieceSizes(nowMs = () => performance.now()): PieceSizes {
  const known = new Map<string, { readonly bytes: number; readonly untilMs: number }>()
  const of = (registry: string): number | undefined => {
    const found = known.get(registry)
    return found && nowMs() < found.untilMs ? found.bytes : undefined
  }
  return {
    of,
    learn(registry, bytes) {
      // Of several blobs at once, each halves its own length: what the least of them found works for all.
      const least = Math.min(bytes, of(registry) ?? bytes)
      known.delete(registry)
      known.set(registry, { bytes: least, untilMs: nowMs() + keptMs })
      const [oldest] = known.keys()
      if (known.size > mostRegistries && oldest !== undefined) known.delete(oldest)
    },
  }
}

export const pieceSizes = createPieceSizes()
