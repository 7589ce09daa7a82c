// Patches of an object: JSON patch (RFC 6902), merge patch (RFC 7386) and, for kinds of Kubernetes itself, strategic merge
// patch. Limits keep a small JSON patch from building an object that is too large or too deep.
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../api/errors.ts'
import { maxDepth } from '../../http/json-depth.ts'
import { type ObjectFields, objectFields } from '../kinds/kind.ts'
import type { FieldShape } from './field-paths.ts'
import { strategicMerge } from './strategic-merge.ts'

const maxOperations = 1_000
/** Limits the total length, as JSON, of the values that one patch copies. */
const maxCopiedChars = 1_048_576

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
  let result: unknown = structuredClone(object)
  const budget: Budget = { copiedChars: 0 }
  for (const each of patch) {
    const { op, path, from, value } = objectFields(each)
    if (typeof op !== 'string' || typeof path !== 'string') throw bad('an operation has no op or no path')
    if (withValue.has(op) && value === undefined) throw bad(`${op} has no value`)
    result = applied(result, { op, path, from: typeof from === 'string' ? from : undefined, value }, budget)
  }
  refuseDeep(result)
  return objectFields(result)
}

/** Visits level by level, because recursion would overflow the stack on an object that steps have nested deeply. */
function refuseDeep(value: unknown): void {
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) throw bad(`the object nests deeper than ${maxDepth} levels`)
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
}

interface Budget {
  copiedChars: number
}

function applied(document: unknown, { op, path, from, value }: Step, budget: Budget): unknown {
  const steps = stepsOf(path)
  switch (op) {
    case 'add':
      return put(document, steps, structuredClone(value), true)
    case 'replace':
      at(document, steps)
      return put(document, steps, structuredClone(value), false)
    case 'remove':
      return remove(document, steps)
    case 'test':
      if (isDeepStrictEqual(at(document, steps), value)) return document
      throw new ApiError('Invalid', `The test of the JSON patch at ${path.slice(0, 200)} failed`)
    case 'move':
    case 'copy': {
      if (from === undefined) throw bad(`${op} has no from`)
      const source = stepsOf(from)
      const found = at(document, source)
      if (op === 'move') {
        if (isWithin(steps, source)) throw bad('an object cannot be moved into itself')
        return put(remove(document, source), steps, found, true)
      }
      refuseDeep(found)
      budget.copiedChars += JSON.stringify(found).length
      if (budget.copiedChars > maxCopiedChars) throw bad('the object becomes too large')
      return put(document, steps, structuredClone(found), true)
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
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function at(document: unknown, steps: readonly string[]): unknown {
  let value = document
  for (const step of steps) {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, step)
    const isLength = Array.isArray(value) && step === 'length'
    if (!isThere || isLength)
      throw new ApiError('Invalid', `The JSON patch names /${steps.join('/').slice(0, 200)}, which does not exist`)
    value = (value as ObjectFields)[step]
  }
  return value
}

/** Changes `document` in place, because it is already a copy of the object. */
function put(document: unknown, steps: readonly string[], value: unknown, isAdd: boolean): unknown {
  const parent = at(document, steps.slice(0, -1))
  const last = steps.at(-1) as string
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : indexIn(parent, last, isAdd)
    parent.splice(index, isAdd ? 0 : 1, value)
  } else if (typeof parent === 'object' && parent !== null && last !== '__proto__')
    (parent as Record<string, unknown>)[last] = value
  else throw bad('a path leads to no object')
  return document
}

function remove(document: unknown, steps: readonly string[]): unknown {
  at(document, steps)
  const parent = at(document, steps.slice(0, -1))
  const last = steps.at(-1) as string
  if (Array.isArray(parent)) parent.splice(indexIn(parent, last, false), 1)
  else delete (parent as Record<string, unknown>)[last]
  return document
}

function indexIn(list: readonly unknown[], step: string, isAdd: boolean): number {
  const index = /^(?:0|[1-9]\d{0,5})$/.test(step) ? Number(step) : -1
  if (index >= 0 && index < list.length + (isAdd ? 1 : 0)) return index
  throw bad(`there is no index ${step.slice(0, 20)}`)
}

const bad = (why: string): ApiError => new ApiError('BadRequest', `The patch cannot be applied: ${why}`)
