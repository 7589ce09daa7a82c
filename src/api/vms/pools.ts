// Pools of warm VMs, which are booted ahead of requests and handed out to those that match.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ExpectedVersion, ResourceVersion, Timestamp } from '../records.ts'

/** Failures of slots, after which the pool waits before it starts another. */
const slotFailures = ['PortInUse', 'StartFailed', 'GuestEnded', 'NoAnswer'] as const
/** Why slots are removed without having been handed out. */
const slotEnds = [
  ...slotFailures,
  'Evicted',
  'TooMany',
  'TooOld',
  'Changed',
  'Cordoned',
  'Rotated',
  'Drained',
  'PoolDeleted',
] as const
export type SlotEndReason = (typeof slotEnds)[number]

export const isSlotFailure = (reason: string): boolean => slotFailures.some((each) => each === reason)

const WaitingState = (description: string) => t.Enum(['running', 'memory'], { description })

const ScheduleEntry = t.Object({
  cron: t.String({ maxLength: 128, description: 'Minute, hour, day, month and weekday, such as `0 8 * * mon-fri`' }),
  timeZone: t.String({ maxLength: 64, description: 'IANA name, such as `Europe/Berlin`' }),
  minIdle: t.Integer({ minimum: 0, maximum: 1_000, description: 'minIdle from then on, until another entry fires' }),
})

export const Pool = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    config: t.String({ description: 'VM configuration that its VMs are made by' }),
    minIdle: t.Integer(),
    maxIdle: t.Integer(),
    maxAge: t.String({ description: 'Such as `12h`' }),
    schedule: t.Array(ScheduleEntry),
    state: WaitingState('How warm VMs wait: running, or as memory on the disk of their node'),
    readyCommand: t.Optional(t.String({ description: 'Passes in the guest when a warm VM is ready' })),
    minIdleNow: t.Integer({ description: 'minIdle, or what the schedule says now' }),
    paused: t.Boolean(),
    ready: t.Integer({ description: 'Warm VMs that a deployment can take now' }),
    starting: t.Integer({ description: 'Warm VMs that boot' }),
    hits: t.Integer({ description: 'Deployments that took a warm VM' }),
    misses: t.Integer({ description: 'Deployments that matched and found none ready' }),
    removed: t.Partial(t.Record(t.Enum(slotEnds), t.Integer()), {
      description: 'Warm VMs that were removed before a deployment took them, by reason',
    }),
    reason: t.Optional(t.String({ description: 'Why it has fewer warm VMs than minIdleNow' })),
    owner: t.String(),
    createdAt: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'Pool' },
)
export type Pool = t.Static<typeof Pool>

const Idle = (description: string) => t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description }))
const settings = {
  minIdle: Idle('Warm VMs to keep ready'),
  maxIdle: Idle('Warm VMs above this number are removed'),
  maxAge: t.Optional(t.String({ maxLength: 64, description: 'Warm VMs are replaced after this time, such as `12h`' })),
  paused: t.Optional(t.Boolean({ description: 'Start no warm VMs; existing ones stay' })),
  schedule: t.Optional(
    t.Array(t.Object({ ...ScheduleEntry.properties, timeZone: t.Optional(ScheduleEntry.properties.timeZone) }), {
      maxItems: 20,
      description: 'Changes minIdle at certain times; `timeZone` defaults to `UTC`. Empty: none',
    }),
  ),
  state: t.Optional(
    WaitingState(
      'Warm VMs wait `running` (default), or as `memory` on the disk of their node, without its cores and memory',
    ),
  ),
  readyCommand: t.Optional(
    t.String({
      maxLength: 1_024,
      description:
        'Shell command; a warm VM is ready when it exits with 0 in the guest, which needs a guest agent. Tried again until then. Empty: none',
    }),
  ),
}

export const PoolInput = t.Object(
  {
    name: t.String({ maxLength: 256 }),
    config: t.String({ maxLength: 64, description: 'A VM configuration' }),
    ...settings,
  },
  { title: 'PoolInput' },
)
export type PoolInput = t.Static<typeof PoolInput>

export const PoolChange = t.Object(
  { config: t.Optional(t.String({ maxLength: 64 })), ...settings, resourceVersion: ExpectedVersion },
  { title: 'PoolChange' },
)
export type PoolChange = t.Static<typeof PoolChange>

const noun = 'pools'
const operation = operationsOf({ noun, allow: 'dev', response: Pool })
const path = `${inNamespace}/pools` as const
const params = { namespace: 'svc-default', pool: 'ios' }
const example = {
  name: 'ios',
  namespace: 'svc-default',
  config: 'ios-build',
  minIdle: 2,
  maxIdle: 4,
  maxAge: '12h',
  schedule: [{ cron: '0 7 * * mon-fri', timeZone: 'Europe/Berlin', minIdle: 4 }],
  state: 'running' as const,
  minIdleNow: 4,
  paused: false,
  ready: 4,
  starting: 0,
  hits: 118,
  misses: 3,
  removed: { TooOld: 12 },
  owner: 'ada@example.com',
  createdAt: '2026-11-17T09:00:00Z',
  resourceVersion: '51',
}

export const listPools = listOperation({
  id: 'listPools',
  noun,
  path,
  allow: 'dev',
  summary: 'List the pools of a namespace',
  item: Pool,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getPool = operation({
  id: 'getPool',
  method: 'GET',
  path: `${path}/{pool}`,
  summary: 'Show a pool',
  example: { params, response: example },
})

export const createPool = operation({
  id: 'createPool',
  method: 'POST',
  path,
  status: 201,
  summary: 'Create a pool of warm VMs',
  description: 'A deployment that asks for exactly what the pool keeps takes one of its VMs, which is replaced.',
  involves: 'body.name',
  past: 'created pool {name}',
  body: PoolInput,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params: { namespace: 'svc-default' },
    body: { name: 'ios', config: 'ios-build', minIdle: 2, maxIdle: 4 },
    response: example,
  },
})

export const updatePool = operation({
  id: 'updatePool',
  method: 'PUT',
  path: `${path}/{pool}`,
  summary: 'Change a pool',
  description: 'Omitted fields stay as they are.',
  involves: 'params.pool',
  past: 'changed pool {name}',
  isIdempotent: true,
  body: PoolChange,
  refuses: ['BadRequest', 'Invalid', 'Conflict', 'Forbidden'],
  example: { params, body: { minIdle: 2 }, response: example },
})

export const rotatePool = operation({
  id: 'rotatePool',
  method: 'POST',
  path: `${path}/{pool}/rotate`,
  summary: 'Replace the warm VMs of a pool',
  description: 'A quarter of the pool at a time. Those that are not replaced yet are still handed out.',
  involves: 'params.pool',
  past: 'rotated pool {name}',
  refuses: ['Forbidden'],
  example: { params, response: example },
})

export const drainPool = operation({
  id: 'drainPool',
  method: 'POST',
  path: `${path}/{pool}/drain`,
  summary: 'Pause a pool and remove its warm VMs',
  description: 'They are removed at once. Set `paused` to false to fill the pool again.',
  involves: 'params.pool',
  past: 'drained pool {name}',
  isIdempotent: true,
  refuses: ['Forbidden'],
  example: { params, response: { ...example, paused: true, ready: 0 } },
})

export const deletePool = operation({
  id: 'deletePool',
  method: 'DELETE',
  path: `${path}/{pool}`,
  summary: 'Delete a pool and its warm VMs',
  description: 'VMs that came from it stay.',
  involves: 'params.pool',
  past: 'deleted pool {name}',
  response: Status,
  refuses: ['Forbidden'],
  example: {
    params,
    response: success('Pool ios deleted from svc-default', { kind: 'pools', name: 'ios' }),
  },
})
