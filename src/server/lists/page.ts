// A list or one of its pages as parts of a JSON text, for both APIs. Records are rendered while the answer is sent, as they
// were when it began.
import type { Entry } from '../../store/store.ts'

/** A page with a limit ends before the item that would make it longer. It has at least one item. */
export const maxPageChars = 8 * 2 ** 20

interface Page {
  /** The records from the page's first on, as they were at one revision. */
  readonly entries: readonly Entry<never>[]
  /** Undefined: all items, however long they are. */
  readonly limit: number | undefined
  readonly start: string
  shows(entry: Entry<never>): boolean
  /** An item as JSON. */
  item(entry: Entry<never>): string
  /** What follows the items. `next` if this is not the last page. */
  end(next?: { readonly lastKey: string; readonly remaining: number }): string
}

export function* pageParts({ entries, limit, start, shows, item, end }: Page): Generator<string> {
  let count = 0
  let chars = 0
  let lastKey = ''
  yield start
  for (const [index, entry] of entries.entries()) {
    if (!shows(entry)) {
      // Other work may run in between.
      yield ''
      continue
    }
    const text = count === limit ? '' : item(entry)
    chars += text.length
    if (count === limit || (limit !== undefined && count > 0 && chars > maxPageChars))
      return yield end({ lastKey, remaining: entries.length - index })
    lastKey = entry.key
    yield count++ > 0 ? `,${text}` : text
  }
  yield end()
}
