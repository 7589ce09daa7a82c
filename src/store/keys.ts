// What a key may be, and the order of keys on every engine: by Unicode code point, which is the order of the UTF-8
// bytes that SQLite and etcd sort by. JavaScript's own `<` differs above U+D7FF.
import { maxKeyBytes, StoreError } from './store.ts'

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x === y) continue
    // Surrogates are halves of code points that sort after all others.
    const xAbove = isSurrogate(x)
    return xAbove === isSurrogate(y) ? x - y : xAbove ? 1 : -1
  }
  return a.length - b.length
}

/** A text that no engine can store as a key was never written, so readers answer "not found" for it. */
export const isKey = (key: string): boolean => key !== '' && key.isWellFormed() && !key.includes('\0') && isShort(key)

/** A UTF-16 unit makes at most three bytes, so most keys need no counting. */
const isShort = (key: string): boolean => key.length * 3 <= maxKeyBytes || Buffer.byteLength(key) <= maxKeyBytes

/** Throws for what cannot be a key. Names are validated earlier; this is the last check. */
export function assertKey(key: string): void {
  if (isKey(key)) return
  const bytes = Buffer.byteLength(key)
  if (bytes > maxKeyBytes)
    throw new StoreError(
      'TooLarge',
      `The key "${key.slice(0, 60)}…" has ${bytes} bytes; the limit is ${maxKeyBytes}: use a shorter name`,
    )
  throw new TypeError(`${JSON.stringify(key)} cannot be a key: keys are well-formed text without NUL, and not empty`)
}

/** The first text after every key that begins with `prefix`; undefined if there is none. */
export function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  while (points.at(-1) === 0x10ffff) points.pop()
  const last = points.pop()
  if (last === undefined) return undefined
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
}
