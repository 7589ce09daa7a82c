// Patches of an object: JSON patch (RFC 6902), merge patch (RFC 7386) and, for kinds of Kubernetes itself, strategic merge
// patch. Limits keep a small JSON patch from building an object that is too large or too deep.
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../api/errors.ts'
import { maxDepth } from '../../http/json-limits.ts'
import { type ObjectFields, objectFields } from '../kinds/kind.ts'
import type { FieldShape } from './field-paths.ts'
import { strategicMerge } from './strategic-merge.ts'

const maxOperations = 1_000
/** Limits the total length, as JSON, of the values that one patch copies. */
const maxCopiedChars = 262_144

/** How to apply a patch, by its content type. */
export const patches: Readonly<
  Record<string, (object: ObjectFields, patch: unknown, shape: FieldShape) => ObjectFields>
> = {
  'application/json-patch+json': jsonPatch,
  'application/merge-patch+json': (object, patch) => merged(object, objectIn(patch)),
  'application/strategic-merge-patch+json': (object, patch, shape) => strategicMerge(object, objectIn(patch), shape),
}

function objectIn(patch: unknown): ObjectFields {
  if (typeof patch === 'object' && patch !== null && !Array.isArray(patch)) return patch as ObjectFields
  throw bad('a merge patch must be an object')
}

/** A field that is null in the patch is removed. */
function merged(target: unknown, patch: ObjectFields): ObjectFields {
  const result = new Map(Object.entries(objectFields(target)))
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name)
    else if (typeof value === 'object' && !Array.isArray(value))
      result.set(name, merged(result.get(name), value as ObjectFields))
    else result.set(name, value)
  }
  return Object.fromEntries(result)
}

interface Step {
  readonly op: string
  readonly path: string
  readonly from: string | undefined
  readonly value: unknown
}

const withValue: ReadonlySet<string> = new Set(['add', 'replace', 'test'])

function jsonPatch(object: ObjectFields, patch: unknown): ObjectFields {
  if (!Array.isArray(patch)) throw bad('a JSON patch must be a list of operations')
  if (patch.length > maxOperations) throw bad(`a JSON patch may have at most ${maxOperations} operations`)
  const draft: Draft = { root: { ...object }, copies: new WeakSet(), copiedChars: 0 }
  for (const each of patch) {
    const { op, path, from, value } = objectFields(each)
    if (typeof op !== 'string' || typeof path !== 'string') throw bad('an operation has no op or no path')
    if (withValue.has(op) && value === undefined) throw bad(`${op} has no value`)
    carryOut({ op, path, from: typeof from === 'string' ? from : undefined, value }, draft)
  }
  refuseDeep(draft.root, object)
  return draft.root
}

/**
 * Visits level by level, because recursion would overflow the stack on an object that steps have nested deeply. Skips what
 * is still as in `before`.
 */
function refuseDeep(value: unknown, before: unknown): void {
  let level = [{ value: objectOrList(value), before: objectOrList(before) }]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw bad(`the object nests deeper than ${maxDepth} levels`)
    const next: typeof level = []
    for (const each of level)
      for (const name of Object.keys(each.value)) {
        const [part, was] = [each.value[name], each.before[name]]
        if (typeof part === 'object' && part !== null && part !== was)
          next.push({ value: objectOrList(part), before: objectOrList(was) })
      }
    level = next
  }
}

const objectOrList = (value: unknown): ObjectFields =>
  typeof value === 'object' && value !== null ? (value as ObjectFields) : {}

/** An object that a patch changes, of which only the parts that change are copied. */
interface Draft {
  readonly root: ObjectFields
  /** Objects and lists that were copied, and can be changed. */
  readonly copies: WeakSet<object>
  copiedChars: number
}

function carryOut({ op, path, from, value }: Step, draft: Draft): void {
  const steps = stepsOf(path)
  switch (op) {
    case 'add':
      put(draft, steps, value, true)
      break
    case 'replace':
      at(draft, steps)
      put(draft, steps, value, false)
      break
    case 'remove':
      remove(draft, steps)
      break
    case 'test':
      if (isDeepStrictEqual(at(draft, steps), value)) break
      throw new ApiError('Invalid', `The test of the JSON patch at ${path.slice(0, 200)} failed`)
    case 'move':
    case 'copy': {
      if (from === undefined) throw bad(`${op} has no from`)
      const source = stepsOf(from)
      const found = at(draft, source)
      if (op === 'move') {
        if (isWithin(steps, source)) throw bad('an object cannot be moved into itself')
        remove(draft, source)
        put(draft, steps, found, true)
        break
      }
      refuseDeep(found, undefined)
      const text = JSON.stringify(found)
      draft.copiedChars += text.length
      if (draft.copiedChars > maxCopiedChars) throw bad('it copies more than 256 KiB')
      put(draft, steps, JSON.parse(text), true)
      break
    }
    default:
      throw bad(`unknown operation ${JSON.stringify(op.slice(0, 20))}`)
  }
}

const isWithin = (steps: readonly string[], source: readonly string[]): boolean =>
  steps.length > source.length && source.every((step, index) => step === steps[index])

/** Splits a JSON pointer such as `/spec/tags/0`, in which `~1` stands for a slash and `~0` for a tilde. */
function stepsOf(pointer: string): string[] {
  if (pointer === '') throw bad('the whole object cannot be replaced')
  if (!pointer.startsWith('/') || pointer.length > 1_024) throw bad('a path must begin with a slash')
  const steps = pointer.slice(1).split('/', maxDepth + 1)
  if (steps.length > maxDepth) throw bad(`a path has more than ${maxDepth} steps`)
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function at({ root }: Draft, steps: readonly string[]): unknown {
  let value: unknown = root
  for (const step of steps) {
    const isThere = Object.hasOwn(objectOrList(value), step) && objectOrList(value)[step] !== undefined
    const isLength = Array.isArray(value) && step === 'length'
    if (!isThere || isLength)
      throw new ApiError('Invalid', `The JSON patch names /${steps.join('/').slice(0, 200)}, which does not exist`)
    value = (value as ObjectFields)[step]
  }
  return value
}

/** The parent of what the steps lead to, as a copy that can be changed. */
function parentOf(draft: Draft, steps: readonly string[]): Record<string, unknown> | unknown[] {
  const parents = steps.slice(0, -1)
  at(draft, parents)
  let value: unknown = draft.root
  for (const step of parents) {
    const inside = value as Record<string, unknown>
    value = inside[step]
    if (typeof value !== 'object' || value === null) throw bad('a path leads to no object')
    if (draft.copies.has(value)) continue
    value = Array.isArray(value) ? [...value] : { ...value }
    draft.copies.add(value as object)
    inside[step] = value
  }
  return value as Record<string, unknown> | unknown[]
}

function put(draft: Draft, steps: readonly string[], value: unknown, isAdd: boolean): void {
  const parent = parentOf(draft, steps)
  const last = steps.at(-1) as string
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : indexIn(parent, last, isAdd)
    parent.splice(index, isAdd ? 0 : 1, value)
  } else if (last === '__proto__') throw bad('a path leads to no object')
  else parent[last] = value
}

function remove(draft: Draft, steps: readonly string[]): void {
  at(draft, steps)
  const parent = parentOf(draft, steps)
  const last = steps.at(-1) as string
  if (Array.isArray(parent)) parent.splice(indexIn(parent, last, false), 1)
  else delete parent[last]
}

function indexIn(list: readonly unknown[], step: string, isAdd: boolean): number {
  const index = /^(?:0|[1-9]\d{0,5})$/.test(step) ? Number(step) : -1
  if (index >= 0 && index < list.length + (isAdd ? 1 : 0)) return index
  throw bad(`there is no index ${step.slice(0, 20)}`)
}

const bad = (why: string): ApiError => new ApiError('BadRequest', `The patch cannot be applied: ${why}`)
