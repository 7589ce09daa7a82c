// The paths of the fields that can have managers. A path is a list of steps as Kubernetes writes them: `f:cpu` is a field,
// `v:"ios"` an item of a set, `k:{"uid":"1"}` an item with a key. By the schema of the kind, objects and maps have a path
// for each field; a list is one value unless `x-kubernetes-list-type` says otherwise.

import { ApiError } from '../../../api/errors.ts'
import { isObject } from '../../../api/json.ts'
import { type ObjectFields, objectFields } from '../kinds/kind.ts'

export interface FieldShape {
  readonly properties?: Readonly<Record<string, FieldShape>>
  readonly patternProperties?: Readonly<Record<string, FieldShape>>
  /** True: the schema does not know its fields, so it is one value. */
  readonly additionalProperties?: unknown
  readonly items?: FieldShape
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

/** By path, which is its steps as JSON. */
type Values = ReadonlyMap<string, unknown>
export type Paths = ReadonlySet<string>

const maxFields = 5_000
/** Limits the total length of the paths that a client sends. */
const maxPathChars = 1_048_576

const tooMany = (): ApiError => new ApiError('Invalid', `The object has more than ${maxFields} fields`)

const pathOf = (steps: readonly string[]): string => JSON.stringify(steps)
const stepsOf = (path: string): readonly string[] => JSON.parse(path) as string[]

/** The shape of a field; undefined if the schema does not have the field. */
function inside({ properties, patternProperties }: FieldShape, name: string): FieldShape | undefined {
  if (properties && Object.hasOwn(properties, name)) return properties[name]
  return patternProperties && Object.values(patternProperties)[0]
}

const hasFields = ({ properties, patternProperties, additionalProperties }: FieldShape): boolean =>
  additionalProperties !== true && (properties !== undefined || patternProperties !== undefined)

/** Returns a function that makes the step of an item. Undefined if the list is one value. */
export function keyOfItem(shape: FieldShape): ((item: unknown) => string) | undefined {
  const type = shape['x-kubernetes-list-type']
  const keys = shape['x-kubernetes-list-map-keys'] ?? []
  if (type === 'set') return (item) => `v:${JSON.stringify(item)}`
  if (type !== 'map') return undefined
  return (item) => `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, objectFields(item)[key]])))}`
}

export function valuesOf(object: unknown, shape: FieldShape): Values {
  const found = new Map<string, unknown>()
  const add = (steps: readonly string[], value: unknown): void => {
    if (found.size >= maxFields) throw tooMany()
    found.set(pathOf(steps), value)
  }
  const look = (value: unknown, of: FieldShape, steps: readonly string[]): void => {
    if (isObject(value) && hasFields(of)) {
      for (const [name, each] of Object.entries(value)) {
        const part = inside(of, name)
        // Fields that the schema does not have are not stored.
        if (part) look(each, part, [...steps, `f:${name}`])
      }
      return
    }
    const stepOf = Array.isArray(value) ? keyOfItem(of) : undefined
    if (stepOf) for (const item of value as readonly unknown[]) add([...steps, stepOf(item)], item)
    else add(steps, value)
  }
  look(object, shape, [])
  return found
}

export function merged(onto: unknown, from: unknown, shape: FieldShape): unknown {
  if (isObject(from) && hasFields(shape)) {
    const result = new Map(Object.entries(objectFields(onto)))
    for (const [name, value] of Object.entries(from)) {
      const part = inside(shape, name)
      result.set(name, part ? merged(result.get(name), value, part) : value)
    }
    return Object.fromEntries(result)
  }
  const stepOf = Array.isArray(from) && Array.isArray(onto) ? keyOfItem(shape) : undefined
  if (!stepOf) return from
  const items = new Map((onto as readonly unknown[]).map((item) => [stepOf(item), item]))
  for (const item of from as readonly unknown[]) items.set(stepOf(item), item)
  return [...items.values()]
}

export function withoutPaths(object: unknown, paths: Paths, shape: FieldShape): unknown {
  if (paths.size === 0) return object
  const drop = (value: unknown, of: FieldShape, steps: readonly string[]): unknown => {
    if (isObject(value) && hasFields(of)) {
      const kept = Object.entries(value)
        .map(([name, each]) => ({ name, each, at: [...steps, `f:${name}`] }))
        .filter(({ at }) => !paths.has(pathOf(at)))
      return Object.fromEntries(
        kept.map(({ name, each, at }) => {
          const part = inside(of, name)
          return [name, part ? drop(each, part, at) : each]
        }),
      )
    }
    const stepOf = Array.isArray(value) ? keyOfItem(of) : undefined
    if (!stepOf) return value
    return (value as readonly unknown[]).filter((item) => !paths.has(pathOf([...steps, stepOf(item)])))
  }
  return drop(object, shape, [])
}

interface Tree {
  [step: string]: Tree
}

/** Nests the steps, as in `fieldsV1`. */
export function encoded(paths: Iterable<string>): ObjectFields {
  // Safe without Object.hasOwn, because all steps begin with f:, v: or k:.
  const root: Tree = {}
  for (const path of [...paths].sort()) {
    let at = root
    for (const step of stepsOf(path)) at = at[step] ??= {}
  }
  return root
}

/** Reads `fieldsV1`. Refuses steps that Kubernetes does not write. */
export function decoded(fields: unknown): Paths {
  const found = new Set<string>()
  let chars = 0
  const add = (path: string): void => {
    // Nested fields repeat their common steps, so a short text can hold long paths.
    chars += path.length
    if (found.size >= maxFields || chars > maxPathChars) throw tooMany()
    found.add(path)
  }
  const look = (value: unknown, steps: readonly string[]): void => {
    if (!isObject(value)) throw unreadable('it is no object')
    const names = Object.keys(value).filter((name) => name !== '.')
    if (names.length === 0 && steps.length > 0) add(pathOf(steps))
    for (const name of names) {
      if (!/^[fvk]:/.test(name)) throw unreadable(`it has ${JSON.stringify(name.slice(0, 40))}`)
      // An item with a key is one value.
      if (name.startsWith('k:')) look({}, [...steps, name])
      else look(value[name], [...steps, name])
    }
  }
  look(fields, [])
  return found
}

const unreadable = (why: string): ApiError =>
  new ApiError('BadRequest', `Invalid metadata.managedFields: ${why}`, {
    hint: 'Leave metadata.managedFields out',
  })

/** `.spec.tags["ios"]` in messages. */
export const pathText = (path: string): string =>
  stepsOf(path)
    .map((step) => {
      const rest = step.slice(2)
      if (step.startsWith('f:')) return `.${rest}`
      if (step.startsWith('v:')) return `[${rest}]`
      const keys = Object.entries(JSON.parse(rest) as ObjectFields)
      return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
    })
    .join('')
