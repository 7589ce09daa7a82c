// Which element of a long table shows which row: an element whose row has left shows another one, which costs the browser little
// more than the new texts. Pure.

export interface Slot {
  /** The element. */
  readonly id: number
  /** The row that it shows. */
  readonly key: string
}

/**
 * Slots for the rows that are to be drawn. A row that stays keeps its element, and so what somebody does there; the others take
 * elements that are free, in the order that the elements have. One that is kept back (the keyboard is in it) is not given to another
 * row: an action would be taken on what somebody did not choose.
 */
export function reassigned(
  before: readonly Slot[],
  keys: readonly string[],
  keptBack: number | undefined,
): readonly Slot[] {
  const wanted = new Set(keys)
  const kept = new Set(before.flatMap(({ key }) => (wanted.has(key) ? [key] : [])))
  const coming = keys.filter((key) => !kept.has(key))
  const next: Slot[] = []
  for (const slot of before) {
    if (kept.has(slot.key)) next.push(slot)
    else if (slot.id !== keptBack) {
      const key = coming.shift()
      if (key !== undefined) next.push({ id: slot.id, key })
    }
  }
  let id = before.reduce((most, slot) => Math.max(most, slot.id), -1)
  for (const key of coming) next.push({ id: ++id, key })
  return next
}

/** As the rows are: what is read out and where Tab leads. Elements that move cost as much as new ones, so not while it is scrolled. */
export function inRowOrder(slots: readonly Slot[], keys: readonly string[]): readonly Slot[] {
  const places = new Map(keys.map((key, index) => [key, index]))
  return [...slots].sort((a, b) => (places.get(a.key) ?? 0) - (places.get(b.key) ?? 0))
}
