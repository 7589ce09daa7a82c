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
}

/** The limit of Kubernetes. The oldest managers that update are merged into one beyond it. */
const maxUpdaters = 10
const maxAppliers = 20
const ancient = 'ancient-changes'
const first = 'before-first-apply'

const ownerOf = ({ fieldsV1, fieldsType: _, ...rest }: ManagedFields): Owner => ({ ...rest, paths: decoded(fieldsV1) })
const entryOf = ({ paths, ...rest }: Owner): ManagedFields => ({
  ...rest,
  fieldsType: 'FieldsV1',
  fieldsV1: encoded(paths) as ManagedFields['fieldsV1'],
})

const isOf = (owner: Owner, { manager }: Manager, operation: Owner['operation']): boolean =>
  owner.manager === manager && owner.operation === operation

/** Keeps entries whose fields are unchanged, with their time, so that equal entries need no write. */
function entriesOf(before: readonly ManagedFields[], owners: readonly Owner[]): readonly ManagedFields[] {
  const known = new Map(before.map((entry) => [`${entry.operation} ${entry.manager}`, entry]))
  return mergeOldest(owners.filter(({ paths }) => paths.size > 0)).map((owner) => {
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
  const latest = [...old].at(-1) as Owner
  const paths = new Set([...old].flatMap((owner) => [...owner.paths]))
  return [{ ...latest, manager: ancient, paths }, ...owners.filter((owner) => !old.has(owner))]
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
  const owners = entries.map(ownerOf)
  const own = owners.find((owner) => isOf(owner, by, 'Update'))
  const left = owners
    .filter((owner) => owner !== own)
    .map((owner) => ({ ...owner, paths: minus(minus(owner.paths, changed), removed) }))
  const mine: Owner = {
    ...by,
    operation: 'Update',
    paths: minus(new Set([...(own?.paths ?? []), ...changed]), removed),
  }
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
      : entries.map(ownerOf)
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
  const conflicts = others.flatMap((owner) =>
    [...owner.paths].filter((path) => differs.has(path) && !isFromKubectl(path)).map((path) => ({ owner, path })),
  )
  if (conflicts.length > 0 && !isForced) throw conflicting(conflicts)
  const left = others.map((owner) => ({ ...owner, paths: minus(owner.paths, differs) }))
  const kept = new Set(left.flatMap(({ paths }) => [...paths]))
  const dropped = new Set([...(own?.paths ?? [])].filter((path) => !wanted.has(path) && !kept.has(path)))
  const mine: Owner = { ...by, operation: 'Apply', paths: new Set(wanted.keys()) }
  if (!own && left.filter(({ operation }) => operation === 'Apply').length >= maxAppliers) throw tooManyAppliers()
  return {
    object: withoutPaths(merged(live, config, shape), dropped, shape),
    managedFields: entriesOf(entries, [...left, mine]),
  }
}

const minus = (paths: Paths, less: Paths): Paths => new Set([...paths].filter((path) => !less.has(path)))

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

/** Reads `metadata.managedFields` of a client. Undefined: the client did not send any. */
export function readManagedFields(
  value: unknown,
  apiVersion: string,
  time: string,
): readonly ManagedFields[] | undefined {
  if (value === undefined) return undefined
  if (!Array.isArray(value) || value.length > maxEntries) throw notManaged(`at most ${maxEntries} entries`)
  return value
    .map(objectFields)
    .filter((entry) => Object.keys(entry).length > 0)
    .map((entry): ManagedFields => {
      const { manager, operation } = entry
      if (typeof manager !== 'string' || manager === '' || manager.length > 128) throw notManaged('manager: a name')
      if (operation !== 'Apply' && operation !== 'Update') throw notManaged('operation: Apply or Update')
      const at =
        typeof entry.time === 'string' && !Number.isNaN(Date.parse(entry.time)) ? entry.time.slice(0, 40) : time
      return entryOf({ manager, operation, apiVersion, time: at, paths: decoded(entry.fieldsV1 ?? {}) })
    })
}

const notManaged = (must: string): ApiError =>
  new ApiError('Invalid', `Invalid metadata.managedFields: use ${must}`, {
    causes: [invalidField('metadata.managedFields', `Invalid metadata.managedFields: use ${must}`)],
  })
