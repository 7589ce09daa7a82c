// Events: what was changed, by whom and with which outcome.
import * as t from 'typebox'
import { inNamespace, ListQuery, listOperation, type Operation } from '../operation.ts'
import { ResourceVersion, Timestamp } from '../records.ts'

export const Event = t.Object(
  {
    name: t.String(),
    type: t.Enum(['Normal', 'Warning']),
    reason: t.String({ description: 'What happened, in one word for programs: `StopVm`, `VmCrashed`' }),
    message: t.String(),
    namespace: t.String({ description: 'Where it happened. Events of a deleted namespace are kept in `svc-default`' }),
    involved: t.Object({
      kind: t.String(),
      name: t.String(),
      uid: t.Optional(
        t.String({ description: 'Of VMs, nodes, pools, runner pools and service accounts: distinguishes namesakes' }),
      ),
    }),
    actor: t.String({ description: '`system` for what happened without a request' }),
    requestId: t.String({ description: 'Empty for what happened without a request' }),
    outcome: t.String({ description: '`Succeeded` or `Failed`' }),
    at: Timestamp,
    count: t.Optional(
      t.Integer({ description: 'If a caller changed labels, annotations or a description several times in a minute' }),
    ),
    lastAt: t.Optional(Timestamp),
    resourceVersion: ResourceVersion,
  },
  { title: 'Event' },
)
export type Event = t.Static<typeof Event>

const list = listOperation({
  id: 'listEvents',
  noun: 'events',
  path: `${inNamespace}/events`,
  allow: 'dev',
  summary: 'List the events of a namespace',
  item: Event,
  example: {
    params: { namespace: 'svc-default' },
    item: {
      name: '0mi1k2z00-4f7a',
      type: 'Normal',
      reason: 'AddRegistryCredential',
      message: 'admin@example.com stored credentials for https://ghcr.io',
      namespace: 'svc-default',
      involved: { kind: 'registry-credentials', name: 'https://ghcr.io' },
      actor: 'admin@example.com',
      requestId: '5f0c-1',
      outcome: 'Succeeded',
      at: '2026-11-15T09:00:00Z',
      resourceVersion: '12',
    },
  },
})

export const listEvents = {
  ...list,
  description:
    'By `fieldSelector`: `involved.kind`, `involved.name`, `involved.uid`, `actor`, `reason`, `outcome`, `type`. ' +
    'Kept for 30 days; of each namespace the 10,000 newest, and those of administrators, agents and nodes apart.',
  query: t.Object({
    ...ListQuery.properties,
    since: t.Optional(t.String({ maxLength: 40, description: 'From this time on, such as `2026-11-17T12:00:00Z`' })),
    until: t.Optional(t.String({ maxLength: 40, description: 'Before this time' })),
  }),
  response: t.Object({
    ...list.response.properties,
    completeSince: t.Optional(
      t.String({ format: 'date-time', description: 'No event from this time on is missing. Absent without any event' }),
    ),
  }),
  refuses: [...list.refuses, 'BadRequest'],
} as const satisfies Operation
