// What the finder finds, and in which order: names that begin with what was typed come first.

export interface Found {
  readonly key: string
  /** What it is, in a word. */
  readonly kind: string
  readonly name: string
  /** What tells it from others of its name. */
  readonly detail?: string | undefined
  readonly path: string
}

const mostFound = 12
const collator = new Intl.Collator('en', { numeric: true })

/** Smaller is better; undefined: not found. Every word that was typed is in the name, the detail or the kind. */
function rankOf({ name, detail = '', kind }: Found, typed: string, words: readonly string[]): number | undefined {
  const lower = name.toLowerCase()
  const text = `${lower} ${detail} ${kind}`.toLowerCase()
  if (!words.every((word) => text.includes(word))) return undefined
  if (lower === typed) return 0
  if (lower.startsWith(typed)) return 1
  return words.every((word) => lower.includes(word)) ? 2 : 3
}

interface Ranked {
  readonly entry: Found
  readonly rank: number
}

export function find(entries: readonly Found[], typed: string): readonly Found[] {
  const wanted = typed.trim().toLowerCase()
  const words = wanted.split(/\s+/).filter(Boolean)
  const before = (a: Ranked, b: Ranked): boolean =>
    a.rank !== b.rank ? a.rank < b.rank : words.length > 0 && collator.compare(a.entry.name, b.entry.name) < 0
  // The best so far, in their order: ten thousand are compared once each with the last of them, and not sorted with every key.
  const best: Ranked[] = []
  for (const entry of entries) {
    const rank = rankOf(entry, wanted, words)
    if (rank === undefined) continue
    const ranked = { entry, rank }
    const last = best.at(-1)
    if (best.length === mostFound && last && !before(ranked, last)) continue
    const place = best.findIndex((each) => before(ranked, each))
    best.splice(place < 0 ? best.length : place, 0, ranked)
    if (best.length > mostFound) best.pop()
  }
  return best.map(({ entry }) => entry)
}
