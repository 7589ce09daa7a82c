// The JSON text of a value, of a limited size.
import { maxValueBytes, StoreError } from './store.ts'

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
