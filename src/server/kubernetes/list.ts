// get and list: from memory, in pages, as objects or as a Table.
import { ApiError, badRequest, invalidField } from '../../api/errors.ts'
import type { Horizon } from '../../store/horizon.ts'
import { compareRevs, type Entry, type Rev } from '../../store/store.ts'
import { seenHere } from '../gate/read-own-writes.ts'
import type { Listing } from '../lists/listing.ts'
import { apiVersionOf, type Kind, type KubeObject } from './kinds/kind.ts'
import type { KubeQuery } from './query.ts'
import { columnDefinitions, metaVersion, type Renderer, rendered, rowOf } from './render.ts'
import { objectNotFound } from './status.ts'
import type { WireLists } from './wire-lists.ts'

/** The entry of a name, if the caller may see it. `asked`: as the caller spells it. */
export function entryOf(kind: Kind, listing: Listing<unknown>, name: string, asked = name): Entry<never> {
  const entry = listing.collection.get(listing.scope, name) ?? spread(listing, name)
  if (entry && (!listing.visible || listing.visible(listing.item(entry)))) return entry
  throw objectNotFound(kind, asked)
}

/** Of a kind in no namespace whose records are in one. */
function spread({ collection, scope }: Listing<unknown>, name: string): Entry<never> | undefined {
  if (scope !== '') return undefined
  return collection.list().find(({ value }) => (value as { name?: string }).name === name)
}

export function listText(lists: WireLists, listing: Listing<unknown>, renderer: Renderer, query: KubeQuery): string {
  const { view, prefix } = listing.collection
  const test = lists.test(selectorsOf(query))
  const start = query.continue === undefined ? undefined : readToken(query.continue, prefix)
  const rev = start?.rev ?? view.rev
  const from = start === undefined ? {} : { after: start.key }
  const { limit = Number.POSITIVE_INFINITY } = query
  const isFiltered = test !== undefined || listing.visible !== undefined
  const shown: Entry<never>[] = []
  let left = 0
  for (const entry of view.range(encodeURIComponent(listing.scope), { ...from, limit: Number.POSITIVE_INFINITY })) {
    if (shown.length === limit && !isFiltered) left++
    else if (lists.shows(listing, test, entry)) {
      if (shown.length < limit) shown.push(entry)
      else {
        left = 1
        break
      }
    }
  }
  const last = shown.at(-1)
  const metadata = {
    resourceVersion: rev,
    ...(left > 0 && last && { continue: makeToken(last.key, rev) }),
    ...(left > 0 && !isFiltered && { remainingItemCount: left }),
  }
  if (renderer.form.as === 'table') {
    const rows = shown.map((entry) => JSON.stringify(rowOf(lists.object(listing, entry), renderer)))
    return tableText(renderer, metadata, rows)
  }
  return itemsText(
    renderer,
    metadata,
    shown.map((entry) => lists.item(listing, entry)),
  )
}

/** Of a list that was made for this answer. */
export function madeText(objects: readonly KubeObject[], renderer: Renderer, metadata: object): string {
  if (renderer.form.as === 'table')
    return tableText(
      renderer,
      metadata,
      objects.map((object) => JSON.stringify(rowOf(object, renderer))),
    )
  return itemsText(
    renderer,
    metadata,
    objects.map((object) => JSON.stringify(rendered(object, renderer))),
  )
}

const tableText = ({ form, kind }: Renderer, metadata: object, rows: readonly string[]): string =>
  `{"kind":"Table","apiVersion":"${metaVersion(form.version)}","metadata":${JSON.stringify(metadata)},` +
  `"columnDefinitions":${JSON.stringify(columnDefinitions(kind))},"rows":[${rows.join(',')}]}`

function itemsText({ form, kind }: Renderer, metadata: object, items: readonly string[]): string {
  const [name, version] =
    form.as === 'metadata'
      ? ['PartialObjectMetadataList', metaVersion(form.version)]
      : [`${kind.kind}List`, apiVersionOf(kind)]
  return `{"kind":"${name}","apiVersion":"${version}","metadata":${JSON.stringify(metadata)},"items":[${items.join(',')}]}`
}

export const selectorsOf = ({ labelSelector, fieldSelector }: KubeQuery) => ({
  ...(labelSelector !== undefined && { labelSelector }),
  ...(fieldSelector !== undefined && { fieldSelector }),
})

/** A page goes on after a key; the version is that of the first page, from which a watch misses nothing. */
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
 * What a query names is seen here: its version, and that of its first page. They may come from a server that was ahead, and
 * a page without what happened up to its version would be missed for good by who watches from there.
 */
export async function reachVersions(
  { horizon }: { readonly horizon?: Horizon | undefined },
  { view, prefix }: Listing<unknown>['collection'],
  query: KubeQuery,
): Promise<void> {
  const { resourceVersion, continue: token } = query
  if (resourceVersion !== undefined && !isVersion(resourceVersion))
    throw badRequest([invalidField('resourceVersion', 'resourceVersion is not a version of this service')])
  const named = [resourceVersion, token === undefined ? undefined : readToken(token, prefix).rev]
  for (const each of named) {
    const rev: Rev = BigInt(each ?? 0).toString()
    if (compareRevs(rev, view.rev) <= 0 || (horizon && (await seenHere(horizon, rev)))) continue
    throw new ApiError('Expired', 'Too large resource version: this service has not reached it', {
      hint: 'List without resourceVersion',
    })
  }
}
