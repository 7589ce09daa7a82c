// update and patch: what differs between an object and what a client makes of it becomes operations of the table. Labels
// and annotations are kept in the record; what cannot be changed is refused.
import { isDeepStrictEqual } from 'node:util'
import { ApiError, invalid } from '../../api/errors.ts'
import { expecting } from '../../store/expectation.ts'
import { keeping, keptOf } from './kept-metadata.ts'
import type { Fields, Kind, KubeObject, Planned, Written } from './kinds/kind.ts'
import { entryOf } from './list.ts'
import { patches } from './patch.ts'
import { run, type Writer } from './run.ts'
import { conflict } from './status.ts'

/** Returns the object as it is then. A change that makes no difference writes nothing. */
export async function updateObject(writer: Writer, name: string, object: Written): Promise<KubeObject> {
  const { kind, listing, lists } = writer
  const entry = entryOf(kind, listing, name)
  const before = lists.object(listing, entry)
  const { uid, resourceVersion } = object.metadata
  const refusal = (): ApiError => conflict(kind, name)
  if (uid !== undefined && uid !== before.metadata.uid) throw refusal()
  if (resourceVersion !== undefined && resourceVersion !== entry.rev) throw refusal()
  const plans = [...plansOf(kind, before, object)]
  const first = plans.shift()
  if (!first) return before
  const start = () => run(writer, first)
  await (resourceVersion === undefined ? start() : expecting({ key: entry.key, rev: entry.rev, refusal }, start))
  if (writer.query.isDryRun)
    return {
      ...before,
      ...(object.spec !== undefined && { spec: { ...(before.spec as Fields), ...(object.spec as Fields) } }),
    }
  for (const planned of plans) await run(writer, planned)
  return lists.object(listing, entryOf(kind, listing, name))
}

function plansOf(kind: Kind, before: KubeObject, after: Written): readonly Planned[] {
  const change = kind.update as NonNullable<Kind['update']>
  if (!change.isSame(before, after)) throw unchangeable(kind)
  const [was, is] = [keptOf(kind, before), keptOf(kind, after)]
  const isKept = isDeepStrictEqual(was, is)
  if (!isKept && kind.keptAs === undefined) throw notKept(kind)
  return [...change.plan(before, after), ...(isKept ? [] : [keeping(kind, before.metadata.name, is)])]
}

const unchangeable = (kind: Kind): ApiError => {
  const message = `The spec of a ${kind.kind} cannot be changed`
  return invalid(
    kind.plural,
    [{ field: 'spec', reason: 'FieldValueForbidden', message }],
    'Delete the object and create it again',
  )
}

const notKept = (kind: Kind): ApiError => {
  const message = `Labels and annotations of a ${kind.kind} cannot be changed`
  return invalid(kind.plural, [{ field: 'metadata', reason: 'FieldValueForbidden', message }])
}

/** The object that a patch makes of another one. */
export function patched(kind: Kind, contentType: string, before: KubeObject, patch: unknown): Fields {
  const type = contentType.split(';', 1)[0]?.trim() ?? ''
  const isStrategic = type === 'application/strategic-merge-patch+json'
  const apply = Object.hasOwn(patches, type) ? patches[type] : undefined
  if (!apply || (isStrategic && kind.group === 'orka.macstadium.com'))
    throw new ApiError(
      'UnsupportedMediaType',
      `The body of the request is in an unsupported format: ${type.slice(0, 100) || 'none'}`,
      {
        hint: 'Use kubectl patch --type=merge or --type=json',
      },
    )
  const { resourceVersion: _, ...metadata } = before.metadata
  return apply({ ...before, metadata }, patch)
}
