// Reads fields of 2.4.x requests leniently: numbers and booleans may be text, and clients return "None" and "N/A", which
// answers contain for fields that are not set.
import { badRequest, type Cause } from '../../api/errors.ts'
import type { BodyFields } from './bodies.ts'

/** Returns undefined for a field that is not set. Throws a text that names the expected type. */
type Reader<T> = (value: unknown) => T | undefined

const isUnset = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && ['', 'None', 'N/A', 'null'].includes(value))

const reader =
  <T>(expected: string, read: (value: unknown) => T | undefined): Reader<T> =>
  (value) => {
    if (isUnset(value)) return undefined
    const found = read(value)
    if (found === undefined) throw expected
    return found
  }

const scalar = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value).trim()
    : undefined

export const text = reader('a text', scalar)

const numberIn = (value: unknown): number | undefined => {
  const found = Number(scalar(value) || Number.NaN)
  return Number.isFinite(found) && found >= 0 ? found : undefined
}

export const number = reader('a number', numberIn)

export const integer = reader('a whole number', (value) => {
  const found = numberIn(value)
  return Number.isInteger(found) ? found : undefined
})

const flags: Readonly<Record<string, boolean>> = {
  true: true,
  '1': true,
  yes: true,
  false: false,
  '0': false,
  no: false,
}
export const flag = reader('true or false', (value) => flags[scalar(value)?.toLowerCase() ?? ''])

/** `["8000:80"]`, `8000:80,9000:90`, or the list as JSON. */
export const textList = reader('a list of texts', (value) => {
  const list = typeof value === 'string' ? fromText(value) : value
  if (!Array.isArray(list)) return undefined
  const found = list.map(scalar)
  return found.every((each) => each !== undefined) ? (found as string[]) : undefined
})

const fromText = (value: string): unknown => (value.startsWith('[') ? parsed(value) : value.split(','))

/** `{items:[{key,value}]}`, or the same as JSON in a form. */
export const metadataItems = reader('{"items":[{"key":…,"value":…}]}', (value) => {
  const whole = typeof value === 'string' ? parsed(value) : value
  const items = (whole as { items?: unknown } | undefined)?.items
  if (!Array.isArray(items)) return undefined
  const pairs = items.map((item: unknown) => {
    const { key, value: content } = (item ?? {}) as Record<string, unknown>
    return [scalar(key), scalar(content)] as const
  })
  return pairs.every(([key, content]) => key !== undefined && content !== undefined)
    ? Object.fromEntries(pairs as [string, string][])
    : undefined
})

function parsed(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}

type Readers = Readonly<Record<string, Reader<unknown>>>
type ValueOf<R> = R extends Reader<infer T> ? T : never
type Read<S extends Readers, Required extends keyof S> = {
  readonly [Name in keyof S]: Name extends Required ? ValueOf<S[Name]> : ValueOf<S[Name]> | undefined
}

/** Ignores unknown fields. The refusal names all faulty fields. */
export function readLegacyFields<const S extends Readers, const Required extends keyof S & string = never>(
  fields: BodyFields,
  readers: S,
  required: readonly Required[] = [],
): Read<S, Required> {
  const causes: Cause[] = []
  const entries = Object.entries(readers).map(([name, read]) => {
    try {
      const value = read(fields[name])
      if (value === undefined && (required as readonly string[]).includes(name))
        causes.push({ field: name, reason: 'FieldValueRequired', message: `${name} is missing` })
      return [name, value] as const
    } catch (expected) {
      if (typeof expected !== 'string') throw expected
      causes.push({ field: name, reason: 'FieldValueInvalid', message: `${name} must be ${expected}` })
      return [name, undefined] as const
    }
  })
  if (causes.length > 0) throw badRequest(causes, 'Correct these fields')
  return Object.fromEntries(entries) as Read<S, Required>
}
