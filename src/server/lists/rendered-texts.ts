// The items and pages that were rendered last, shared by all lists and watches of a process, with one limit for all.

/** Texts are kept in two generations of this size. When the young one is full, the old one is dropped. */
const generationBytes = 32 * 2 ** 20
/** Longer items are rendered for each answer. That costs hardly more than to send them, and they would push out all others. */
const maxItemChars = 16_384

type Generation = WeakMap<object, WeakMap<object, string | Buffer>>

let young: Generation = new WeakMap()
let old: Generation = new WeakMap()
let youngBytes = 0

/** Returns what `keepText` kept for the same list and record, unless others were used since. */
export function keptText<T extends string | Buffer>(list: object, record: object): T | undefined {
  const text = young.get(list)?.get(record)
  if (text !== undefined) return text as T
  const older = old.get(list)?.get(record)
  return older === undefined ? undefined : keepText(list, record, older as T)
}

export function keepText<T extends string | Buffer>(list: object, record: object, text: T): T {
  if (typeof text === 'string' && text.length > maxItemChars) return text
  // A text with other characters than ASCII may take two bytes for each.
  const bytes = Buffer.byteLength(text) === text.length ? text.length : 2 * text.length
  if (youngBytes + bytes > generationBytes) {
    old = young
    young = new WeakMap()
    youngBytes = 0
  }
  youngBytes += bytes
  const ofList = young.get(list) ?? new WeakMap()
  young.set(list, ofList.set(record, text))
  return text
}
