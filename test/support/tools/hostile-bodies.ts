// Request bodies that grow to any size, in the shapes that make code walk, copy or compare too much: derived from an example
// and its schema, so that each field of each operation has its turn.

export interface Shape {
  readonly name: string
  body(bytes: number): string
}

/** The parts of a schema that shapes are made of. */
interface Schema {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: unknown
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly required?: readonly string[]
}

/** Parts that `of` makes, one after the other, with commas between them. */
export function filled(bytes: number, of: (index: number) => string): string {
  const parts: string[] = []
  for (let index = 0, size = 0; size < bytes; index++) {
    const part = of(index)
    parts.push(part)
    size += part.length + 1
  }
  return parts.join(',')
}

/** Values of a field, whatever its schema: each is wrong for most fields, and all get through a parser. */
const values: Readonly<Record<string, (bytes: number) => string>> = {
  'a long text': (bytes) => JSON.stringify('a'.repeat(bytes)),
  'a long text of words': (bytes) => JSON.stringify('a-b/c:d,e='.repeat(bytes / 10)),
  'many numbers': (bytes) => `[${filled(bytes, () => '0')}]`,
  'many texts': (bytes) => `[${filled(bytes, (index) => `"a${index}"`)}]`,
  'many lists': (bytes) => `[${filled(bytes, () => '[]')}]`,
  'many objects': (bytes) => `[${filled(bytes, () => '{}')}]`,
  'many fields': (bytes) => `{${filled(bytes, (index) => `"a${index}":"b"`)}}`,
  'many fields with objects': (bytes) => `{${filled(bytes, (index) => `"a${index}":{}`)}}`,
  'many fields with long names': (bytes) => `{${filled(bytes, (index) => `"${'a'.repeat(90)}${index}":""`)}}`,
  'deep lists': (bytes) => `[${filled(bytes, () => `${'['.repeat(50)}${']'.repeat(50)}`)}]`,
}

const mark = '@grown@'

/** The example with a value that grows at a path. */
function grownAt(example: unknown, path: readonly string[], value: (bytes: number) => string): Shape['body'] {
  const root = structuredClone(objectOf(example))
  let at = root
  for (const step of path.slice(0, -1)) {
    at[step] = objectOf(at[step])
    at = at[step] as Record<string, unknown>
  }
  at[path.at(-1) as string] = mark
  const [before = '', behind = ''] = JSON.stringify(root).split(`"${mark}"`)
  return (bytes) => before + value(bytes) + behind
}

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

/** The smallest value that fits a schema. */
function smallest(schema: Schema, index: number): unknown {
  if (schema.anyOf) return smallest(schema.anyOf[0] as Schema, index)
  if (schema.type === 'object') {
    const required = (schema.required ?? []).map((name) => [name, smallest(schema.properties?.[name] ?? {}, index)])
    return Object.fromEntries(required)
  }
  if (schema.type === 'array') return []
  if (schema.type === 'boolean') return true
  if (schema.type === 'integer' || schema.type === 'number') return index
  return `a${index}`
}

/** Shapes of one field: those that fit its schema, and some others, so that all have their turn among the fields. */
function shapesAt(example: unknown, path: readonly string[], schema: Schema, count = 1): Shape[] {
  const all = Object.entries(values)
  const first = [...path.join('.')].reduce((sum, char) => sum + char.charCodeAt(0), 0)
  const chosen = Array.from(
    { length: count },
    (_, index) => all[(first + index * 3) % all.length] as (typeof all)[number],
  )
  const { items } = schema
  const named = [
    ...chosen,
    ...all.filter(
      ([what]) => schema.patternProperties && what.startsWith('many fields') && !chosen.some(([name]) => name === what),
    ),
    ...(items
      ? [
          [
            'many items',
            (bytes: number) => `[${filled(bytes, (index) => JSON.stringify(smallest(items, index)))}]`,
          ] as const,
        ]
      : []),
  ]
  const inside = Object.entries(schema.properties ?? {}).flatMap(([each, of]) => shapesAt(example, [...path, each], of))
  return [
    ...named.map(([what, value]) => ({ name: `${path.join('.')}: ${what}`, body: grownAt(example, path, value) })),
    ...inside,
  ]
}

/** All shapes of a JSON body. */
export function jsonShapes(example: unknown, schema: Schema): Shape[] {
  const text = JSON.stringify(objectOf(example))
  const more = (fields: (bytes: number) => string) => (bytes: number) =>
    `${text.slice(0, -1)}${text === '{}' ? '' : ','}${fields(bytes)}}`
  const [first = 'name'] = Object.keys(schema.properties ?? {})
  return [
    { name: 'unknown fields', body: more((bytes) => filled(bytes, (index) => `"u${index}":1`)) },
    { name: 'unknown objects', body: more((bytes) => filled(bytes, (index) => `"u${index}":{"a":[]}`)) },
    { name: 'one field many times', body: more((bytes) => filled(bytes, () => `${JSON.stringify(first)}:"a"`)) },
    { name: 'one unknown field many times', body: more((bytes) => filled(bytes, () => '"u":1')) },
    { name: 'names in escapes', body: more((bytes) => filled(bytes, (index) => `"\\u0061${index}":"\\ud83d\\ude00"`)) },
    { name: 'only brackets', body: (bytes) => '[{'.repeat(bytes / 2) },
    { name: 'a list', body: (bytes) => `[${filled(bytes, () => text)}]` },
    { name: 'spaces', body: (bytes) => `${text}${' '.repeat(bytes)}` },
    ...shapesAt(example, ['unknown'], {}, Object.keys(values).length),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, of]) => shapesAt(example, [name], of)),
  ]
}

/** Operations of a JSON patch. */
export const patchShapes: readonly Shape[] = Object.entries({
  'operations that add': (index: number) => `{"op":"add","path":"/metadata/labels/a${index}","value":"b"}`,
  'operations that test': () => '{"op":"test","path":"/kind","value":1}',
  'operations that add to the front of a list': () => '{"op":"add","path":"/metadata/finalizers/0","value":"a/b"}',
  'operations that copy': (index: number) => `{"op":"copy","from":"/metadata","path":"/metadata/a${index}"}`,
  'operations that move': (index: number) =>
    index % 2 === 0
      ? '{"op":"move","from":"/metadata/annotations","path":"/spec/a"}'
      : '{"op":"move","from":"/spec/a","path":"/metadata/annotations"}',
  'operations with long paths': () => `{"op":"remove","path":"${'/a'.repeat(500)}"}`,
  'no operations': () => '0',
}).flatMap(([name, of]): Shape[] => [
  { name, body: (bytes) => `[${filled(bytes, of)}]` },
  // As many as a patch may have, behind a value that fills the rest.
  {
    name: `${name}, behind a large value`,
    body: (bytes) =>
      `[{"op":"add","path":"/metadata/annotations","value":{"a/a":${JSON.stringify('a'.repeat(Math.max(1, bytes - 100_000)))}}},${Array.from({ length: 900 }, (_, index) => of(index)).join(',')}]`,
  },
])
