// What a value is once it has been through JSON, without parsing it where that can be helped: texts, which are most of
// a record's bytes, are then shared and not copied.
import type { Json } from './store.ts'

/** Stands for what only JSON itself can tell: dates and other classes, `toJSON`, the key "__proto__". */
const unsure = Symbol('unsure')

type Copied = Json | undefined | typeof unsure

/** undefined: left out of objects, null in arrays. */
function copy(value: unknown): Copied {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return value
  // JSON has neither a negative zero nor anything that is not finite.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : null
  if (typeof value !== 'object' || 'toJSON' in value) return unsure
  return Array.isArray(value) ? copyArray(value) : copyObject(value)
}

function copyArray(values: readonly unknown[]): Copied {
  const copied: Json[] = []
  for (let i = 0; i < values.length; i++) {
    const one = copy(values[i]) ?? null
    if (one === unsure) return unsure
    copied.push(one)
  }
  return copied
}

function copyObject(value: object): Copied {
  if (Object.getPrototypeOf(value) !== Object.prototype) return unsure
  const copied: Record<string, Json> = {}
  for (const key of Object.keys(value)) {
    const one = copy((value as Record<string, unknown>)[key])
    if (one === unsure || key === '__proto__') return unsure
    if (one !== undefined) copied[key] = one
  }
  return copied
}

/** What reading `text`, the JSON of `value`, back would give. */
export function readBack(value: Json, text: string): Json {
  const copied = copy(value)
  return copied === undefined || copied === unsure ? (JSON.parse(text) as Json) : copied
}
