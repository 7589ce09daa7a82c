// Answers to bytes, by schema: a field that the schema does not name cannot leave the service, and known shapes are
// written faster than JSON.stringify does.
import fastJson from 'fast-json-stringify'
import type { TSchema } from 'typebox'

export type Render = (value: unknown) => string

const made = new WeakMap<TSchema, Render>()

export function renderer(schema: TSchema): Render {
  const known = made.get(schema)
  if (known) return known
  const render =
    Object.keys(schema).length === 0 ? JSON.stringify : (fastJson(schema as Parameters<typeof fastJson>[0]) as Render)
  made.set(schema, render)
  return render
}
