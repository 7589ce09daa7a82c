// Several watches over one connection, because browsers limit connections and a page shows several lists.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'

/** What a client sends: begin a watch under a number of its choice, or end it. */
export const WatchMessage = t.Union([
  t.Object(
    {
      watch: t.Integer({ minimum: 0, description: 'Number chosen by the client' }),
      path: t.String({ maxLength: 2_048, description: 'Path of a list, such as /api/v1/namespaces/svc-default/vms' }),
      query: t.Optional(
        t.Object(
          {
            resourceVersion: t.Optional(t.String({ maxLength: 64 })),
            labelSelector: t.Optional(t.String({ maxLength: 4_096 })),
            fieldSelector: t.Optional(t.String({ maxLength: 4_096 })),
          },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false },
  ),
  t.Object({ unwatch: t.Integer({ minimum: 0 }) }, { additionalProperties: false }),
])
export type WatchMessage = t.Static<typeof WatchMessage>

export const watchAll = operation({
  id: 'watchAll',
  noun: 'watches',
  method: 'GET',
  path: `${base}/watch`,
  allow: 'user',
  status: 101,
  summary: 'Watch several lists on one WebSocket',
  description:
    'The client sends `{"watch":1,"path":"/api/v1/namespaces/svc-default/vms","query":{"resourceVersion":"42"}}` and ' +
    '`{"unwatch":1}`; the service sends arrays of `{"watch":1,"type":"ADDED","object":…}`, like list watches. ' +
    'Without a version it starts with all current records and a BOOKMARK. `ERROR` with a `Status` ends one watch. ' +
    'The connection closes with 4401 when the token or session ends.',
  isUpgrade: true,
  response: t.String(),
  example: { response: '' },
})
