// Values as JSON text of a limited size.
import { type Entry, type Json, maxValueBytes, type Rev, StoreError } from './store.ts'

/** The entry that was stored as this text. */
export const entryOf = (key: string, text: string, rev: Rev): Entry => ({
  key,
  value: JSON.parse(text) as Json,
  rev,
  bytes: Buffer.byteLength(text),
})

/** Throws TooLarge. */
export function jsonText(key: string, value: unknown): string {
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`The value for "${key}" is not JSON`)
  // A UTF-16 unit makes at most three bytes, so most values need no counting.
  if (text.length * 3 <= maxValueBytes) return text
  const bytes = Buffer.byteLength(text)
  if (bytes <= maxValueBytes) return text
  throw new StoreError('TooLarge', `The value for "${key}" has ${bytes} bytes; the limit is ${maxValueBytes}`)
}
