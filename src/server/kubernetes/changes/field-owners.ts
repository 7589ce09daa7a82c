// The managers of the fields of an object (`metadata.managedFields`), by the rules of Kubernetes: an update takes the fields
// that it changes. An apply takes the fields that it names, gives up those that it named before, and conflicts with the
// managers of fields that it would change.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, type Cause, invalidField } from '../../../api/errors.ts'
import type { ManagedFields } from '../../../store/records/record-meta.ts'
import { objectFields } from '../kinds/kind.ts'
import {
  decoded,
  encoded,
  type FieldShape,
  merged,
  type Paths,
  pathText,
  valuesOf,
  withoutPaths,
} from './field-paths.ts'

export interface Manager {
  readonly manager: string
  readonly apiVersion: string
  readonly time: string
}

interface Owner extends Manager {
  readonly operation: ManagedFields['operation']
  readonly paths: Paths
  /** The entry with exactly these paths. */
  readonly entry?: ManagedFields
}

/** The limit of Kubernetes. The oldest managers that update are merged into one beyond it. */
const maxUpdaters = 10
const maxAppliers = 20
/** Limits the total length of the paths of all managers, because every change of the object reads them. */
const maxPathChars = 65_536
/** Limits the total length of the paths that a client sends. */
const maxSentChars = 1_048_576
const ancient = 'ancient-changes'
const first = 'before-first-apply'

/**
 * The paths of entries of records and requests. All requests share those of an unchanged record, and a request that is
 * tried again after a conflict does not decode its own again.
 */
const decodedEntries = new WeakMap<object, Paths>()

function pathsOf(entry: { readonly fieldsV1?: unknown }): Paths {
  const paths = decodedEntries.get(entry) ?? decoded(entry.fieldsV1 ?? {})
  decodedEntries.set(entry, paths)
  return paths
}

const ownersOf = (entries: readonly ManagedFields[]): readonly Owner[] =>
  withoutOldest(entries, pathsOf).map((entry) => {
    const { manager, operation, apiVersion, time } = entry
    return { manager, operation, apiVersion, time, paths: pathsOf(entry), entry }
  })

const entryOf = ({ manager, operation, apiVersion, time, paths }: Owner): ManagedFields => ({
  manager,
  operation,
  apiVersion,
  time,
  fieldsType: 'FieldsV1',
  fieldsV1: encoded(paths) as ManagedFields['fieldsV1'],
})

const isOf = (owner: Owner, { manager }: Manager, operation: Owner['operation']): boolean =>
  owner.manager === manager && owner.operation === operation

/** Keeps entries whose fields are unchanged, with their time, so that equal entries need no write. */
function entriesOf(before: readonly ManagedFields[], owners: readonly Owner[]): readonly ManagedFields[] {
  const known = new Map(before.map((entry) => [`${entry.operation} ${entry.manager}`, entry]))
  const left = owners.filter(({ paths }) => paths.size > 0)
  return mergeOldest(withoutOldest(left, ({ paths }) => paths)).map((owner) => {
    if (owner.entry) return owner.entry
    const entry = entryOf(owner)
    const was = known.get(`${owner.operation} ${owner.manager}`)
    return was && isDeepStrictEqual(was.fieldsV1, entry.fieldsV1) ? was : entry
  })
}

function mergeOldest(owners: readonly Owner[]): readonly Owner[] {
  const updaters = owners.filter(({ operation }) => operation === 'Update')
  if (updaters.length <= maxUpdaters) return owners
  const byAge = updaters.toSorted((a, b) => a.time.localeCompare(b.time))
  const old = new Set(byAge.slice(0, updaters.length - maxUpdaters + 1))
  const { entry: _, ...latest } = [...old].at(-1) as Owner
  const paths = new Set([...old].flatMap((owner) => [...owner.paths]))
  return [{ ...latest, manager: ancient, paths }, ...owners.filter((owner) => !old.has(owner))]
}

function charsOf(paths: Paths): number {
  let chars = 0
  for (const path of paths) chars += path.length
  return chars
}

/** Forgets the oldest managers of an object that has too many paths, those that update first. */
function withoutOldest<T extends Pick<Owner, 'operation' | 'time'>>(
  all: readonly T[],
  pathsOf: (of: T) => Paths,
): readonly T[] {
  const ageOf = ({ operation, time }: T): string => `${operation === 'Update' ? 0 : 1} ${time}`
  const kept = new Set<T>()
  let chars = 0
  for (const each of all.toSorted((a, b) => (ageOf(a) < ageOf(b) ? 1 : -1))) {
    chars += charsOf(pathsOf(each))
    if (chars > maxPathChars) break
    kept.add(each)
  }
  return all.filter((each) => kept.has(each))
}

interface Update {
  readonly before: unknown
  readonly after: unknown
  readonly shape: FieldShape
  readonly by: Manager
}

/** Fields that an update changes belong to its manager alone. Fields that it removes lose all their managers. */
export function updated(entries: readonly ManagedFields[], { before, after, shape, by }: Update) {
  const [was, is] = [valuesOf(before, shape), valuesOf(after, shape)]
  const changed = new Set(
    [...is].filter(([path, value]) => !isDeepStrictEqual(was.get(path), value)).map(([path]) => path),
  )
  const removed = new Set([...was.keys()].filter((path) => !is.has(path)))
  if (changed.size === 0 && removed.size === 0) return entries
  const owners = ownersOf(entries)
  const own = owners.find((owner) => isOf(owner, by, 'Update'))
  const left = owners.filter((owner) => owner !== own).map((owner) => without(without(owner, changed), removed))
  const mine = without({ ...by, operation: 'Update', paths: new Set([...(own?.paths ?? []), ...changed]) }, removed)
  return entriesOf(entries, [...left, mine])
}

interface Apply {
  readonly live: unknown
  /** Only the fields that the manager wants. */
  readonly config: unknown
  readonly shape: FieldShape
  readonly by: Manager
  /** Take fields from other managers instead of refusing the conflict. */
  readonly isForced: boolean
  /** The last client-side apply of kubectl. Fields that still have its values are not in conflict for `kubectl`. */
  readonly lastApplied?: unknown
}

const kubectl = 'kubectl'

export function applied(
  entries: readonly ManagedFields[],
  { live, config, shape, by, isForced, lastApplied = {} }: Apply,
): { readonly object: unknown; readonly managedFields: readonly ManagedFields[] } {
  const [current, wanted] = [valuesOf(live, shape), valuesOf(config, shape)]
  // An object without managers was not written through this API. Kubernetes names the same placeholder.
  const owners: readonly Owner[] =
    entries.length === 0 && current.size > 0
      ? [{ ...by, manager: first, operation: 'Update', paths: new Set(current.keys()) }]
      : ownersOf(entries)
  const own = owners.find((owner) => isOf(owner, by, 'Apply'))
  const others = owners.filter((owner) => owner !== own)
  const differs = new Set(
    [...wanted]
      .filter(([path, value]) => current.has(path) && !isDeepStrictEqual(current.get(path), value))
      .map(([path]) => path),
  )
  const lastValues = by.manager === kubectl ? valuesOf(lastApplied, shape) : new Map<string, unknown>()
  const isFromKubectl = (path: string): boolean =>
    lastValues.has(path) && isDeepStrictEqual(lastValues.get(path), current.get(path))
  const refused = [...differs].filter((path) => !isFromKubectl(path)).toSorted()
  const conflicts = others.flatMap((owner) =>
    refused.filter((path) => owner.paths.has(path)).map((path) => ({ owner, path })),
  )
  if (conflicts.length > 0 && !isForced) throw conflicting(conflicts)
  const left = others.map((owner) => without(owner, differs))
  const kept = new Set(left.flatMap(({ paths }) => [...paths]))
  const dropped = new Set([...(own?.paths ?? [])].filter((path) => !wanted.has(path) && !kept.has(path)))
  const mine: Owner = { ...by, operation: 'Apply', paths: new Set(wanted.keys()) }
  if (charsOf(mine.paths) > maxPathChars) throw notManaged('fewer fields, or shorter names, in an apply')
  if (!own && left.filter(({ operation }) => operation === 'Apply').length >= maxAppliers) throw tooManyAppliers()
  return {
    object: withoutPaths(merged(live, config, shape), dropped, shape),
    managedFields: entriesOf(entries, [...left, mine]),
  }
}

/** The same owner if it has none of the paths. */
function without(owner: Owner, less: Paths): Owner {
  const { entry: _, paths, ...rest } = owner
  if (![...less].some((path) => paths.has(path))) return owner
  return { ...rest, paths: new Set([...paths].filter((path) => !less.has(path))) }
}

const maxCauses = 50

function managerText({ manager, operation, apiVersion, time }: Owner): string {
  return `${JSON.stringify(manager)}${operation === 'Update' ? ` using ${apiVersion} at ${time}` : ''}`
}

/** kubectl recognizes these messages, and adds its advice. */
function conflicting(conflicts: readonly { readonly owner: Owner; readonly path: string }[]): ApiError {
  const [one] = conflicts
  const causes = conflicts.slice(0, maxCauses).map(
    ({ owner, path }): Cause => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${managerText(owner)}`,
      field: pathText(path),
    }),
  )
  if (conflicts.length === 1 && one)
    return new ApiError(
      'Conflict',
      `Apply failed with 1 conflict: conflict with ${managerText(one.owner)}: ${pathText(one.path)}`,
      { causes },
    )
  const lines = [...Map.groupBy(conflicts.slice(0, maxCauses), ({ owner }) => owner)].flatMap(([owner, of]) => [
    `conflicts with ${managerText(owner)}:`,
    ...of.map(({ path }) => `- ${pathText(path)}`),
  ])
  return new ApiError('Conflict', `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`, { causes })
}

const tooManyAppliers = (): ApiError =>
  new ApiError('Invalid', `At most ${maxAppliers} managers may apply an object`, {
    hint: 'Remove entries of metadata.managedFields',
  })

const maxEntries = 64

/** Reads `metadata.managedFields` of a client. */
export function readManagedFields(value: unknown, apiVersion: string, time: string): readonly ManagedFields[] {
  if (!Array.isArray(value) || value.length > maxEntries) throw notManaged(`at most ${maxEntries} entries`)
  let chars = 0
  const owners = value
    .map(objectFields)
    .filter((entry) => Object.keys(entry).length > 0)
    .map((entry): Owner => {
      const { manager, operation } = entry
      if (typeof manager !== 'string' || manager === '' || manager.length > 128) throw notManaged('manager: a name')
      if (operation !== 'Apply' && operation !== 'Update') throw notManaged('operation: Apply or Update')
      const at =
        typeof entry.time === 'string' && !Number.isNaN(Date.parse(entry.time)) ? entry.time.slice(0, 40) : time
      const paths = pathsOf(entry)
      chars += charsOf(paths)
      if (chars > maxSentChars) throw notManaged('fewer fields')
      return { manager, operation, apiVersion, time: at, paths }
    })
  return entriesOf([], owners)
}

const notManaged = (must: string): ApiError =>
  new ApiError('Invalid', `Invalid metadata.managedFields: use ${must}`, {
    causes: [invalidField('metadata.managedFields', `Invalid metadata.managedFields: use ${must}`)],
  })
