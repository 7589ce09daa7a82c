// Assigns rows to the tr elements of a long table. Elements of rows that scrolled out are reused for other rows, which
// costs a third of creating new ones.

export interface Slot {
  readonly id: number
  readonly key: string
}

/**
 * Assigns the rows to be drawn. A row that stays keeps its element and so its focus and state; other rows take free
 * elements in order. `focusedId` is the element with the keyboard focus: it is dropped rather than reused, since its
 * buttons would then act on a row that the user did not choose.
 */
export function reassigned(
  before: readonly Slot[],
  keys: readonly string[],
  focusedId: number | undefined,
): readonly Slot[] {
  const wanted = new Set(keys)
  const kept = new Set(before.flatMap(({ key }) => (wanted.has(key) ? [key] : [])))
  const coming = keys.filter((key) => !kept.has(key))
  const next: Slot[] = []
  for (const slot of before) {
    if (kept.has(slot.key)) next.push(slot)
    else if (slot.id !== focusedId) {
      const key = coming.shift()
      if (key !== undefined) next.push({ id: slot.id, key })
    }
  }
  let id = before.reduce((most, slot) => Math.max(most, slot.id), -1)
  for (const key of coming) next.push({ id: ++id, key })
  return next
}

/**
 * Puts elements in the order of the rows, for Tab and screen readers. Moving elements is slow, so this waits until
 * scrolling has stopped.
 */
export function inRowOrder(slots: readonly Slot[], keys: readonly string[]): readonly Slot[] {
  const places = new Map(keys.map((key, index) => [key, index]))
  return [...slots].sort((a, b) => (places.get(a.key) ?? 0) - (places.get(b.key) ?? 0))
}
