// Search and ranking of the finder: objects and pages by name, and actions by a word of the action and a word of the
// object, in any order.

/** The part of a menu item that the search uses. */
interface Item {
  readonly label: string
  readonly reason?: string | undefined
}

export interface FinderEntry<I extends Item = Item> {
  readonly key: string
  readonly kind: string
  readonly name: string
  /** Tells objects of the same name apart, for example by namespace. */
  readonly detail?: string | undefined
  /** The page to open. */
  readonly path?: string
  /** The action to run. */
  readonly item?: I
  /** The actions of the object. */
  readonly actions?: () => readonly I[]
}

const maxFound = 12
/** Words that are ignored in phrases such as "deploy from sonoma". */
const fillerWords = new Set(['a', 'from', 'in', 'of', 'on', 'the', 'to'])
const collator = new Intl.Collator('en', { numeric: true })

/** Returns a lower rank for a better match; undefined unless the name, detail or kind has every typed word. */
function rankOf(
  { name, detail = '', kind, item }: FinderEntry,
  typed: string,
  words: readonly string[],
): number | undefined {
  const lower = name.toLowerCase()
  const text = `${lower} ${detail} ${kind}`.toLowerCase()
  if (!words.every((word) => text.includes(word))) return undefined
  // Actions that are not possible now come last.
  if (item?.reason !== undefined) return 4
  if (lower === typed) return 0
  if (lower.startsWith(typed)) return 1
  return words.every((word) => lower.includes(word)) ? 2 : 3
}

interface Ranked<I extends Item> {
  readonly entry: FinderEntry<I>
  readonly rank: number
}

const wordsOf = (typed: string): string[] => typed.trim().toLowerCase().split(/\s+/).filter(Boolean)

/** Words may be abbreviated: `sav im` matches "Save as image". */
const matchesLabel = ({ label }: Item, verb: readonly string[]): boolean => {
  const parts = wordsOf(label)
  return verb.every((word) => parts.some((part) => part.startsWith(word)))
}

/** Actions of one object; the ones that are not possible now come last and show the reason. */
const actionsOf = <I extends Item>({ key, kind, name, actions }: FinderEntry<I>): readonly FinderEntry<I>[] =>
  (actions?.() ?? [])
    .map((item) => ({
      key: `${key} ${item.label}`,
      kind: 'Action',
      name: `${item.label}: ${name}`,
      detail: item.reason ?? kind,
      item,
    }))
    .toSorted((a, b) => Number(a.item.reason !== undefined) - Number(b.item.reason !== undefined))

/** Reads `stop web`, `web stop` or `cordon node mac-1` as an action on an object, split at every position. */
function findActions<I extends Item>(entries: readonly FinderEntry<I>[], typed: string): readonly FinderEntry<I>[] {
  const words = wordsOf(typed).filter((word) => !fillerWords.has(word))
  const readings = words.slice(1).flatMap((_, index) => {
    const [first, last] = [words.slice(0, index + 1), words.slice(index + 1)]
    return [
      { verb: first, rest: last },
      { verb: last, rest: first },
    ]
  })
  const objects = readings.length === 0 ? [] : entries.filter(({ actions }) => actions)
  return readings.flatMap(({ verb, rest }) =>
    find(objects, rest.join(' ')).flatMap((thing) =>
      actionsOf(thing).filter(({ item }) => item && matchesLabel(item, verb)),
    ),
  )
}

/** Objects and pages by name, then actions of the current page's object, then actions on other objects. */
export function findAll<I extends Item>(
  entries: readonly FinderEntry<I>[],
  typed: string,
  here: string,
): readonly FinderEntry<I>[] {
  const subject = entries.find(({ path, actions }) => actions && path === here)
  const own = subject ? actionsOf(subject) : []
  const hasQuery = typed.trim() !== ''
  const shown = own.filter(({ item }) => hasQuery || item?.reason === undefined)
  const found = [...find([...shown, ...entries], typed), ...findActions(entries, typed)]
  return [...new Map(found.map((each) => [each.key, each])).values()].slice(0, maxFound)
}

export function find<I extends Item>(entries: readonly FinderEntry<I>[], typed: string): readonly FinderEntry<I>[] {
  const wanted = typed.trim().toLowerCase()
  const words = wordsOf(typed)
  const before = (a: Ranked<I>, b: Ranked<I>): boolean =>
    a.rank !== b.rank ? a.rank < b.rank : words.length > 0 && collator.compare(a.entry.name, b.entry.name) < 0
  // Keeps only the best results, sorted by insertion: sorting ten thousand entries on every key press is too slow.
  const best: Ranked<I>[] = []
  for (const entry of entries) {
    const rank = rankOf(entry, wanted, words)
    if (rank === undefined) continue
    const ranked = { entry, rank }
    const last = best.at(-1)
    if (best.length === maxFound && last && !before(ranked, last)) continue
    const place = best.findIndex((each) => before(ranked, each))
    best.splice(place < 0 ? best.length : place, 0, ranked)
    if (best.length > maxFound) best.pop()
  }
  return best.map(({ entry }) => entry)
}
