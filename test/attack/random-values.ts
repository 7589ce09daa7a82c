// Random values grown from schemas: mostly as the schema says, so that they get past the first checks, and wrong in one place or
// another: of another type, huge, deep, negative, with odd characters.
import type { TSchema } from 'typebox'
import type { Random } from '../support/history/random.ts'

interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly pattern?: string
}

/** Names that exist, so that requests find something. */
const known = [
  'any',
  'prey',
  'svc-team',
  'svc-others',
  'vms',
  'vmconfigs',
  'images',
  'amd64',
  'arm64',
  '2h',
  '10G',
  'start',
]

const odd: readonly string[] = [
  '',
  ' ',
  '\0',
  '\u202e\u0007\u009b31m',
  '💥'.repeat(40),
  '\ud800',
  'İ',
  '../../etc/passwd',
  '..%2f..%2f',
  '%00',
  '{"a":1}',
  '__proto__',
  'constructor',
  'toString',
  '<script>',
  '$(id)',
  "'; --",
  '127.0.0.1:22',
  '-1',
  '1e999',
  '9999999999999999999999',
  'a'.repeat(300),
  '/'.repeat(2_000),
  'x'.repeat(5_000),
  'a,b=c,'.repeat(500),
  '2026-11-19T00:00:00Z',
]

const numbers = [0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, Number.MIN_VALUE]

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

/** Anything at all. */
const anything = (random: Random): unknown =>
  random.pick<() => unknown>([
    () => null,
    () => random.chance(0.5),
    () => random.pick(numbers),
    () => random.pick(odd),
    () => [],
    () => ({}),
    () => ({ toString: 0, length: -1, constructor: null }),
    () => nested(random.pick([3, 40, 300])),
    () => Array.from({ length: random.pick([10, 1_000]) }, (_, index) => index),
    () => Object.fromEntries(Array.from({ length: random.pick([10, 1_000]) }, (_, index) => [`k${index}`, index])),
  ])()

/** `wildness`: how probable it is that a part is not as its schema says; another for each value unless given. */
export function randomValue(
  given: TSchema | undefined,
  random: Random,
  wildness = random.pick([0, 0.01, 0.1]),
): unknown {
  const schema = given as Schema | undefined
  if (!schema || random.chance(wildness)) return anything(random)
  const choices = schema.enum ?? (schema.const !== undefined ? [schema.const] : undefined)
  if (choices) return random.pick(choices)
  if (schema.anyOf) return randomValue(random.pick(schema.anyOf) as TSchema, random, wildness)
  const grow = growers[schema.type ?? '']
  return grow ? grow(schema, random, wildness) : anything(random)
}

type Grower = (schema: Schema, random: Random, wildness: number) => unknown

const growers: Readonly<Record<string, Grower>> = {
  string: (schema, random) => randomText(random, schema.maxLength),
  integer: (schema, random) => Math.round(between(schema, random)),
  number: between,
  boolean: (_, random) => random.chance(0.5),
  null: () => null,
  array: ({ items, maxItems = 20 }, random, wildness) => {
    const count = random.chance(0.05) ? random.pick([maxItems, maxItems + 1, 300]) : random.integer(0, 4)
    return Array.from({ length: Math.min(count, 300) }, () => randomValue(items as TSchema, random, wildness))
  },
  object: ({ properties = {}, required = [], patternProperties, additionalProperties }, random, wildness) => {
    const fields = Object.entries(properties).filter(([name]) => random.chance(required.includes(name) ? 0.95 : 0.4))
    const values = fields.map(([name, field]) => [name, randomValue(field as TSchema, random, wildness)])
    const [free = additionalProperties] = Object.values(patternProperties ?? {})
    const count = typeof free === 'object' ? random.pick([0, 1, 3, 3, 100]) : random.chance(0.1) ? 1 : 0
    const more = Array.from({ length: count }, () => [
      randomText(random, 300),
      randomValue(typeof free === 'object' ? (free as TSchema) : undefined, random, wildness),
    ])
    return Object.fromEntries([...values, ...more])
  },
}

function between({ minimum = 0, maximum = 1_000 }: Schema, random: Random): number {
  if (random.chance(0.2)) return random.pick([minimum, maximum, minimum - 1, maximum + 1, ...numbers])
  return minimum + random.next() * Math.min(maximum - minimum, 100)
}

export function randomText(random: Random, maxLength = 100): string {
  if (random.chance(0.3)) return random.pick(known)
  if (random.chance(0.1)) return random.pick(odd)
  if (random.chance(0.05)) return 'm'.repeat(Math.min(maxLength + random.integer(-1, 1), 100_000))
  return `n${random.integer(0, 40)}`
}

/** A valid value with one of its parts replaced, so that what is behind the first checks has its turn. */
export function withOneChange(value: unknown, random: Random): unknown {
  const whole = structuredClone(value)
  let at = whole as Record<string, unknown>
  for (;;) {
    const keys = Object.keys(at)
    if (keys.length === 0) return whole
    const key = random.pick(keys)
    const part = at[key]
    if (typeof part !== 'object' || part === null || random.chance(0.3)) {
      at[key] = typeof part === 'string' && random.chance(0.7) ? randomText(random) : anything(random)
      return whole
    }
    at = part as Record<string, unknown>
  }
}

/** The text of a body: JSON, sometimes with a field twice, cut off, or followed by more. */
export function randomBody(value: unknown, random: Random): string {
  // Larger ones are refused by their length alone.
  const text = (JSON.stringify(value) ?? '').slice(0, 1_048_576)
  if (random.chance(0.95)) return text
  return random.pick<() => string>([
    () => text.slice(0, random.integer(0, text.length)),
    () => `${text}${text}`,
    () => text.replace('{', '{"name":"twice","name":"twice",'),
    () => text.replace('{', '{"__proto__":{"admin":true},'),
    () => `\ufeff${text}`,
    () => text.replaceAll('"', "'"),
  ])()
}
