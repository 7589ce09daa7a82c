// What the finder finds, and in which order: names that begin with what was typed come first; then what can be done to things, by a
// word of the action and a word of the thing, whichever is first.

/** An item of a menu, as far as it is looked for. */
interface Item {
  readonly label: string
  readonly reason?: string | undefined
}

export interface Found<I extends Item = Item> {
  readonly key: string
  /** What it is, in a word. */
  readonly kind: string
  readonly name: string
  /** What tells it from others of its name. */
  readonly detail?: string | undefined
  /** Where it leads. */
  readonly path?: string
  /** What it does. */
  readonly item?: I
  /** What can be done to it. */
  readonly actions?: () => readonly I[]
}

const maxFound = 12
/** People write sentences: "deploy from sonoma". */
const lesserWords = new Set(['a', 'from', 'in', 'of', 'on', 'the', 'to'])
const collator = new Intl.Collator('en', { numeric: true })

/** Smaller is better; undefined: not found. Every word that was typed is in the name, the detail or the kind. */
function rankOf({ name, detail = '', kind, item }: Found, typed: string, words: readonly string[]): number | undefined {
  const lower = name.toLowerCase()
  const text = `${lower} ${detail} ${kind}`.toLowerCase()
  if (!words.every((word) => text.includes(word))) return undefined
  // What cannot be done now: whoever presses Enter means something else.
  if (item?.reason !== undefined) return 4
  if (lower === typed) return 0
  if (lower.startsWith(typed)) return 1
  return words.every((word) => lower.includes(word)) ? 2 : 3
}

interface Ranked<I extends Item> {
  readonly entry: Found<I>
  readonly rank: number
}

const wordsOf = (typed: string): string[] => typed.trim().toLowerCase().split(/\s+/).filter(Boolean)

/** Each word begins one of the label: `sav im` is "Save as image". */
const isMeant = ({ label }: Item, verb: readonly string[]): boolean => {
  const parts = wordsOf(label)
  return verb.every((word) => parts.some((part) => part.startsWith(word)))
}

/** What can be done to one thing, what cannot be done now last, with the reason. */
const actionsOf = <I extends Item>({ key, kind, name, actions }: Found<I>): readonly Found<I>[] =>
  (actions?.() ?? [])
    .map((item) => ({
      key: `${key} ${item.label}`,
      kind: 'Action',
      name: `${item.label}: ${name}`,
      detail: item.reason ?? kind,
      item,
    }))
    .toSorted((a, b) => Number(a.item.reason !== undefined) - Number(b.item.reason !== undefined))

/** `stop web`, `web stop`, `cordon node mac-1`: every way to read the words as an action and what it is done to. */
function findActions<I extends Item>(entries: readonly Found<I>[], typed: string): readonly Found<I>[] {
  const words = wordsOf(typed).filter((word) => !lesserWords.has(word))
  const readings = words.flatMap((_, at) => {
    const [first, last] = [words.slice(0, at), words.slice(at)]
    return at === 0
      ? []
      : ([
          [first, last],
          [last, first],
        ] as const)
  })
  const things = readings.length === 0 ? [] : entries.filter(({ actions }) => actions)
  return readings.flatMap(([verb, rest]) =>
    find(things, rest.join(' ')).flatMap((thing) =>
      actionsOf(thing).filter(({ item }) => item !== undefined && isMeant(item, verb)),
    ),
  )
}

/** Everything: things and pages by their names, what can be done to what the page is about, then actions on other things. */
export function findAll<I extends Item>(
  entries: readonly Found<I>[],
  typed: string,
  here: string,
): readonly Found<I>[] {
  const subject = entries.find(({ path, actions }) => actions && path === here)
  const own = subject ? actionsOf(subject) : []
  const isAsked = typed.trim() !== ''
  const offered = own.filter(({ item }) => isAsked || item?.reason === undefined)
  const found = [...find([...offered, ...entries], typed), ...findActions(entries, typed)]
  return [...new Map(found.map((each) => [each.key, each])).values()].slice(0, maxFound)
}

export function find<I extends Item>(entries: readonly Found<I>[], typed: string): readonly Found<I>[] {
  const wanted = typed.trim().toLowerCase()
  const words = wordsOf(typed)
  const before = (a: Ranked<I>, b: Ranked<I>): boolean =>
    a.rank !== b.rank ? a.rank < b.rank : words.length > 0 && collator.compare(a.entry.name, b.entry.name) < 0
  // The best so far, in their order: ten thousand are compared once each with the last of them, and not sorted with every key.
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
