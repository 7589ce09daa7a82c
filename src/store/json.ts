// Values as a store keeps them: as JSON, and what reading that back gives.
import { type Json, maxValueBytes, StoreError } from './store.ts'

/** The JSON of a value, or TooLarge. */
export function jsonText(key: string, value: unknown): string {
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`The value for "${key}" is not JSON`)
  // A UTF-16 unit makes at most three bytes: most values need no counting.
  if (text.length * 3 <= maxValueBytes) return text
  const bytes = Buffer.byteLength(text)
  if (bytes <= maxValueBytes) return text
  throw new StoreError('TooLarge', `The value for "${key}" has ${bytes} bytes; the limit is ${maxValueBytes}`)
}

/** What reading its JSON back gives: nearly always the value itself, which is everybody's from then on. */
export const readBack = (value: unknown, text: string): Json =>
  isSame(value) ? (value as Json) : (JSON.parse(text) as Json)

/** Reading it back gives the same. */
function isSame(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean'
  if (value === null) return true
  if (Array.isArray(value)) return Object.getPrototypeOf(value) === Array.prototype && isSameList(value)
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  for (const name in value) if (!isSame((value as Record<string, unknown>)[name])) return false
  return true
}

function isSameList(values: readonly unknown[]): boolean {
  // By number: a hole is nothing that can be read back.
  for (let at = 0; at < values.length; at++) if (!isSame(values[at])) return false
  return true
}
