// Events on the wire: what was changed, by whom, with which outcome.
import * as t from 'typebox'
import { inNamespace, listOperation } from '../operation.ts'
import { ResourceVersion, Timestamp } from '../records.ts'

export const Event = t.Object(
  {
    name: t.String(),
    type: t.Enum(['Normal', 'Warning']),
    reason: t.String({ description: 'The operation, as one word for programs' }),
    message: t.String(),
    involved: t.Object({ kind: t.String(), name: t.String() }),
    actor: t.String(),
    requestId: t.String(),
    outcome: t.String({ description: 'How it ended: `Succeeded`' }),
    at: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'Event' },
)
export type Event = t.Static<typeof Event>

export const listEvents = listOperation({
  id: 'listEvents',
  noun: 'events',
  path: `${inNamespace}/events`,
  allow: 'dev',
  summary: 'List what was changed in a namespace',
  item: Event,
  refuses: ['NotFound'],
  example: {
    params: { namespace: 'svc-default' },
    item: {
      name: '0mi1k2z00-4f7a',
      type: 'Normal',
      reason: 'AddRegistryCredential',
      message: 'admin@example.com: store credentials for a registry: https://ghcr.io',
      involved: { kind: 'registry-credentials', name: 'https://ghcr.io' },
      actor: 'admin@example.com',
      requestId: '5f0c-1',
      outcome: 'Succeeded',
      at: '2026-11-15T09:00:00Z',
      resourceVersion: '12',
    },
  },
})
