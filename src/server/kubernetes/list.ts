// The bodies of lists, and which page of a stored list a query asks for.

import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import { parseJson } from '../../api/json.ts'
import type { Horizon } from '../../store/horizon.ts'
import { compareRevs, type Rev } from '../../store/store.ts'
import { seenHere } from '../gate/read-own-writes.ts'
import type { Spell } from '../gate/spelling.ts'
import type { Listing } from '../lists/listing.ts'
import { pageParts } from '../lists/page.ts'
import type { KindObjects } from './kind-objects.ts'
import { apiVersionOf, type KubeObject } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { columnDefinitions, metaVersion, type Renderer, rendered, rowOf } from './render.ts'

/** Throws for a wrong query. The records are those of now, and are rendered when the parts are read. */
export function listParts(objects: KindObjects, renderer: Renderer, query: KubeQuery, spell: Spell): Iterable<string> {
  const { listing } = objects
  const { view, prefix } = listing.collection
  const test = objects.test(selectorsOf(query))
  const { rev = view.rev, key: after } = query.continue === undefined ? {} : readToken(query.continue, prefix)
  const isFiltered = test !== undefined || listing.visible !== undefined
  const { start, end } = bracketsOf(renderer)
  return pageParts({
    entries: view.range(encodeURIComponent(listing.scope), after === undefined ? {} : { after }),
    limit: query.limit,
    start,
    shows: (entry) => objects.shows(listing, test, entry),
    item: (entry) =>
      spell(renderer.form.as === 'table' ? itemText(objects.object(entry), renderer) : objects.item(listing, entry)),
    end: (next) =>
      end({
        resourceVersion: rev,
        ...(next && { continue: makeToken(next.lastKey, rev) }),
        ...(next && !isFiltered && { remainingItemCount: next.remaining }),
      }),
  })
}

export function* wholeParts(
  objects: readonly KubeObject[],
  renderer: Renderer,
  rev: Rev,
  spell: Spell,
): Generator<string> {
  const { start, end } = bracketsOf(renderer)
  yield start
  for (const [index, object] of objects.entries()) yield (index > 0 ? ',' : '') + spell(itemText(object, renderer))
  yield end({ resourceVersion: rev })
}

const itemText = (object: KubeObject, renderer: Renderer): string =>
  JSON.stringify(renderer.form.as === 'table' ? rowOf(object, renderer) : rendered(object, renderer))

/** The texts around the items of a list. The metadata comes last, because only then it is known where a page ends. */
function bracketsOf({ form, kind }: Renderer) {
  const [name, version] =
    form.as === 'object'
      ? [`${kind.kind}List`, apiVersionOf(kind)]
      : [form.as === 'table' ? 'Table' : 'PartialObjectMetadataList', metaVersion(form.version)]
  const items =
    form.as === 'table' ? `"columnDefinitions":${JSON.stringify(columnDefinitions(kind))},"rows"` : '"items"'
  return {
    start: `{"kind":"${name}","apiVersion":"${version}",${items}:[`,
    end: (metadata: object): string => `],"metadata":${JSON.stringify(metadata)}}`,
  }
}

export const selectorsOf = ({ labelSelector, fieldSelector }: KubeQuery) => ({
  ...(labelSelector !== undefined && { labelSelector }),
  ...(fieldSelector !== undefined && { fieldSelector }),
})

/** All pages have the version of the first one, so that a watch from there misses no change. */
const makeToken = (key: string, rev: string): string => Buffer.from(JSON.stringify([key, rev])).toString('base64url')

function readToken(token: string, prefix: string): { readonly key: string; readonly rev: string } {
  const value = parseJson(Buffer.from(token.slice(0, 4_096), 'base64url').toString('utf8'))
  const [key, rev]: readonly unknown[] = Array.isArray(value) ? value : []
  if (typeof key === 'string' && key.startsWith(prefix) && typeof rev === 'string' && isVersion(rev))
    return { key, rev }
  const message = 'continue is not a value from a page of this list'
  throw badRequest([invalidField('continue', message)], 'List from the start')
}

const isVersion = (text: string): boolean => /^\d{1,20}$/.test(text)

/**
 * Waits until this server has reached the versions that a query names. They may come from a server that was ahead, and a
 * client that watches from the version of an older page would miss the changes in between.
 */
export async function reachVersions(
  { horizon }: { readonly horizon?: Horizon | undefined },
  { view, prefix }: Listing<unknown>['collection'],
  { resourceVersion, continue: token }: KubeQuery,
): Promise<void> {
  if (resourceVersion !== undefined && !isVersion(resourceVersion))
    throw badRequest([invalidField('resourceVersion', 'resourceVersion is not a version of this service')])
  for (const named of [resourceVersion, token === undefined ? undefined : readToken(token, prefix).rev]) {
    const rev: Rev = BigInt(named ?? 0).toString()
    if (compareRevs(rev, view.rev) <= 0 || (horizon && (await seenHere(horizon, rev)))) continue
    throw new ApiError('Expired', 'Too large resource version: this service has not reached it', {
      hint: 'List without resourceVersion',
    })
  }
}
