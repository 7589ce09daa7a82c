// The bodies of lists, and which page of a stored list a query asks for.
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import type { Horizon } from '../../store/horizon.ts'
import { compareRevs, type Entry, type Rev } from '../../store/store.ts'
import { seenHere } from '../gate/read-own-writes.ts'
import type { Listing } from '../lists/listing.ts'
import type { KindObjects } from './kind-objects.ts'
import { apiVersionOf, type KubeObject } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { columnDefinitions, metaVersion, type Renderer, rendered, rowOf } from './render.ts'

export function pageText(objects: KindObjects, renderer: Renderer, query: KubeQuery): string {
  const { listing } = objects
  const { view, prefix } = listing.collection
  const test = objects.test(selectorsOf(query))
  const start = query.continue === undefined ? undefined : readToken(query.continue, prefix)
  const rev = start?.rev ?? view.rev
  const { limit = Number.POSITIVE_INFINITY } = query
  const isFiltered = test !== undefined || listing.visible !== undefined
  const page: Entry<never>[] = []
  let remaining = 0
  const from = { ...(start && { after: start.key }), limit: Number.POSITIVE_INFINITY }
  for (const entry of view.range(encodeURIComponent(listing.scope), from)) {
    if (page.length === limit && !isFiltered) remaining++
    else if (objects.shows(listing, test, entry)) {
      if (page.length < limit) page.push(entry)
      else {
        remaining = 1
        break
      }
    }
  }
  const last = page.at(-1)
  const metadata = {
    resourceVersion: rev,
    ...(remaining > 0 && last && { continue: makeToken(last.key, rev) }),
    ...(remaining > 0 && !isFiltered && { remainingItemCount: remaining }),
  }
  const isTable = renderer.form.as === 'table'
  const itemOf = (entry: Entry<never>): string =>
    isTable ? itemText(objects.object(entry), renderer) : objects.item(listing, entry)
  return listText(renderer, metadata, page.map(itemOf))
}

export const wholeText = (objects: readonly KubeObject[], renderer: Renderer, rev: Rev): string =>
  listText(
    renderer,
    { resourceVersion: rev },
    objects.map((object) => itemText(object, renderer)),
  )

const itemText = (object: KubeObject, renderer: Renderer): string =>
  JSON.stringify(renderer.form.as === 'table' ? rowOf(object, renderer) : rendered(object, renderer))

function listText({ form, kind }: Renderer, metadata: object, items: readonly string[]): string {
  const [name, version] =
    form.as === 'object'
      ? [`${kind.kind}List`, apiVersionOf(kind)]
      : [form.as === 'table' ? 'Table' : 'PartialObjectMetadataList', metaVersion(form.version)]
  const start = `{"kind":"${name}","apiVersion":"${version}","metadata":${JSON.stringify(metadata)}`
  return form.as === 'table'
    ? `${start},"columnDefinitions":${JSON.stringify(columnDefinitions(kind))},"rows":[${items.join(',')}]}`
    : `${start},"items":[${items.join(',')}]}`
}

export const selectorsOf = ({ labelSelector, fieldSelector }: KubeQuery) => ({
  ...(labelSelector !== undefined && { labelSelector }),
  ...(fieldSelector !== undefined && { fieldSelector }),
})

/** All pages have the version of the first one, so that a watch from there misses no change. */
const makeToken = (key: string, rev: string): string => Buffer.from(JSON.stringify([key, rev])).toString('base64url')

function readToken(token: string, prefix: string): { readonly key: string; readonly rev: string } {
  const [key, rev] = parsedToken(token)
  if (typeof key === 'string' && key.startsWith(prefix) && typeof rev === 'string' && isVersion(rev))
    return { key, rev }
  const message = 'continue is not a value from a page of this list'
  throw badRequest([invalidField('continue', message)], 'List from the start')
}

function parsedToken(token: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token.slice(0, 4_096), 'base64url').toString('utf8'))
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
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
