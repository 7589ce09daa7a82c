// watch: the watch of the REST API with objects in place of items, and with bookmarks only for who asked for them.
import type { FastifyReply } from 'fastify'
import { invalid, invalidField } from '../../api/errors.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { Spell } from '../gate/spelling.ts'
import type { Listing } from '../lists/listing.ts'
import { openWatch } from '../lists/watches.ts'
import { apiVersionOf } from './kinds/kind.ts'
import { reachVersions, selectorsOf } from './list.ts'
import type { KubeQuery } from './query.ts'
import { metaVersion, type Renderer } from './render.ts'
import type { WireLists } from './wire-lists.ts'

/** A timer of longer fires at once. */
const longestTimerMs = 2 ** 31 - 1

interface Watched {
  readonly lists: WireLists
  readonly listing: Listing<unknown>
  readonly renderer: Renderer
  readonly query: KubeQuery
  readonly spell: Spell
}

/** Throws before the first byte: 410 for a version whose changes are no longer kept. */
export async function watchEvents(
  services: { readonly horizon?: Horizon | undefined },
  watched: Watched,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<AsyncIterable<string>> {
  const { lists, listing, query, spell } = watched
  checkInitial(query)
  const { timeoutSeconds, sendInitialEvents } = query
  if (sendInitialEvents === true) await reachVersions(services, listing.collection, query)
  const late =
    timeoutSeconds === undefined ? [] : [AbortSignal.timeout(Math.min(timeoutSeconds * 1_000, longestTimerMs))]
  const until = AbortSignal.any([signal, ...late])
  // With the state first, which is not older than the version that was given; without it, from now on.
  const version =
    sendInitialEvents === true
      ? undefined
      : (query.resourceVersion ?? (sendInitialEvents === false ? listing.collection.view.rev : undefined))
  const asked = { ...selectorsOf(query), ...(version !== undefined && { resourceVersion: version }) }
  const lines = await openWatch(services, { lists, listing, query: asked, spell, signal: until })
  return events(lines, watched, reply)
}

async function* events(lines: AsyncIterable<string>, watched: Watched, reply: FastifyReply): AsyncGenerator<string> {
  const { renderer, query } = watched
  // Clients wait for the headers before they trust the watch: nothing may change for an hour.
  reply.raw.flushHeaders()
  let isStateSent = query.sendInitialEvents !== true
  for await (const text of lines) {
    // A bookmark stands alone: openWatch yields the changes of one moment together, and bookmarks by themselves.
    if (!text.includes(bookmarkStart)) {
      if (text !== '') yield text
      continue
    }
    for (const line of text.split('\n')) {
      if (line === '') continue
      if (!line.startsWith(bookmarkStart)) yield `${line}\n`
      else if (query.allowsBookmarks || !isStateSent) {
        const { resourceVersion } = (JSON.parse(line) as { object: { resourceVersion: string } }).object
        yield bookmark(renderer, resourceVersion, !isStateSent)
        isStateSent = true
      }
    }
  }
}

const bookmarkStart = '{"type":"BOOKMARK"'

function bookmark({ kind, form }: Renderer, resourceVersion: string, isAfterState: boolean): string {
  const metadata = {
    resourceVersion,
    ...(isAfterState && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
  }
  const [name, version] =
    form.as === 'table'
      ? ['Table', metaVersion(form.version)]
      : form.as === 'metadata'
        ? ['PartialObjectMetadata', metaVersion(form.version)]
        : [kind.kind, apiVersionOf(kind)]
  const object = { kind: name, apiVersion: version, metadata, ...(form.as === 'table' && { rows: [] }) }
  return `${JSON.stringify({ type: 'BOOKMARK', object })}\n`
}

function checkInitial({ sendInitialEvents, resourceVersionMatch }: KubeQuery): void {
  if (sendInitialEvents === undefined || resourceVersionMatch === 'NotOlderThan') return
  const message = 'resourceVersionMatch must be NotOlderThan with sendInitialEvents'
  throw invalid('', [invalidField('resourceVersionMatch', message)])
}
