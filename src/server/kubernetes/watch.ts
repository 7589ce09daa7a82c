// watch: the watch of the REST API with objects as items, and with bookmarks only for clients that asked for them.
import type { FastifyReply } from 'fastify'
import { invalid, invalidField } from '../../api/errors.ts'
import type { Horizon } from '../../store/horizon.ts'
import type { Spell } from '../gate/spelling.ts'
import { openWatch } from '../lists/watches.ts'
import type { KindObjects } from './kind-objects.ts'
import { apiVersionOf } from './kinds/kind.ts'
import { reachVersions, selectorsOf } from './list.ts'
import type { KubeQuery } from './query.ts'
import { metaVersion, type Renderer } from './render.ts'

/** Node fires longer timers immediately. */
const maxTimerMs = 2 ** 31 - 1

interface KindWatch {
  readonly objects: KindObjects
  readonly renderer: Renderer
  readonly query: KubeQuery
  readonly spell: Spell
}

/** Throws before the first byte: 410 for a version whose changes are no longer kept. */
export async function watchEvents(
  services: { readonly horizon?: Horizon | undefined },
  watch: KindWatch,
  signal: AbortSignal,
  reply: FastifyReply,
): Promise<AsyncIterable<string>> {
  const { objects, query, spell } = watch
  const { listing } = objects
  checkInitial(query)
  const { timeoutSeconds, sendInitialEvents } = query
  if (sendInitialEvents === true) await reachVersions(services, listing.collection, query)
  const timeouts =
    timeoutSeconds === undefined ? [] : [AbortSignal.timeout(Math.min(timeoutSeconds * 1_000, maxTimerMs))]
  // Without a version, the watch starts with the present objects, which are no older than a requested version.
  const resourceVersion =
    sendInitialEvents === true
      ? undefined
      : (query.resourceVersion ?? (sendInitialEvents === false ? listing.collection.view.rev : undefined))
  const lines = await openWatch(services, {
    lists: objects,
    listing,
    query: { ...selectorsOf(query), ...(resourceVersion !== undefined && { resourceVersion }) },
    spell,
    signal: AbortSignal.any([signal, ...timeouts]),
  })
  return events(lines, watch, reply)
}

async function* events(
  lines: AsyncIterable<string>,
  { renderer, query }: KindWatch,
  reply: FastifyReply,
): AsyncGenerator<string> {
  // Clients wait for the headers, and the first change may come much later.
  reply.raw.flushHeaders()
  let isStateSent = query.sendInitialEvents !== true
  for await (const text of lines) {
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
