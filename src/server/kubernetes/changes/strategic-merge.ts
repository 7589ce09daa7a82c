// Strategic merge patch, which kubectl sends for kinds of Kubernetes itself: a merge patch that merges lists by key and has
// directives (`$patch`, `$retainKeys`, `$deleteFromPrimitiveList/…`).
import { ApiError } from '../../../api/errors.ts'
import { type ObjectFields, objectFields } from '../kinds/kind.ts'
import { type FieldShape, keyOfItem } from './field-paths.ts'

const fromList = '$deleteFromPrimitiveList/'
const order = '$setElementOrder/'

export function strategicMerge(target: unknown, patch: ObjectFields, shape: FieldShape | undefined): ObjectFields {
  const { $patch: directive, $retainKeys: retained, ...fields } = patch
  if (directive === 'replace') return withoutDirectives(fields)
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge') throw bad(`unknown $patch ${JSON.stringify(directive)}`)
  const result = new Map(Object.entries(objectFields(target)))
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith(order)) continue
    if (name.startsWith(fromList)) {
      const list = name.slice(fromList.length)
      const less = new Set(listIn(name, value).map((item) => JSON.stringify(item)))
      const items = result.get(list)
      if (Array.isArray(items))
        result.set(
          list,
          items.filter((item) => !less.has(JSON.stringify(item))),
        )
      continue
    }
    const of = shape?.properties && Object.hasOwn(shape.properties, name) ? shape.properties[name] : undefined
    if (value === null) result.delete(name)
    else if (Array.isArray(value)) result.set(name, mergedList(result.get(name), value, of))
    else if (typeof value === 'object') result.set(name, strategicMerge(result.get(name), value as ObjectFields, of))
    else result.set(name, value)
  }
  if (retained === undefined) return Object.fromEntries(result)
  const kept = new Set(listIn('$retainKeys', retained))
  return Object.fromEntries([...result].filter(([name]) => kept.has(name)))
}

function mergedList(target: unknown, patch: readonly unknown[], shape: FieldShape | undefined): readonly unknown[] {
  const keyOf = shape && keyOfItem(shape)
  const isReplaced = patch.some((item) => objectFields(item).$patch === 'replace')
  if (!keyOf || isReplaced) return patch.filter((item) => objectFields(item).$patch === undefined)
  const items = new Map((Array.isArray(target) ? target : []).map((item) => [keyOf(item), item]))
  for (const item of patch) {
    if (objectFields(item).$patch === 'delete') items.delete(keyOf(item))
    else items.set(keyOf(item), typeof item === 'object' ? { ...(items.get(keyOf(item)) as object), ...item } : item)
  }
  return [...items.values()]
}

const withoutDirectives = (fields: ObjectFields): ObjectFields =>
  Object.fromEntries(Object.entries(fields).filter(([name, value]) => !name.startsWith('$') && value !== null))

function listIn(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw bad(`${name.slice(0, 100)} must be a list`)
}

const bad = (why: string): ApiError => new ApiError('BadRequest', `The patch cannot be applied: ${why}`)
