// Handlers of pools. They write the desired state, which the controller fill-pools carries out.
import { randomUUID } from 'node:crypto'
import { alreadyExists, type Cause, invalid, invalidField, invalidIf, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/pools.ts'
import type { Pool, PoolChange, PoolInput } from '../../../api/vms/pools.ts'
import { displayName, type Principal } from '../../../auth/principal.ts'
import type { Roles } from '../../../auth/roles.ts'
import { timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { formatDuration, parseTtl } from '../../../rules/durations.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { scheduleProblems } from '../../../rules/pools/schedule.ts'
import { neverWarm } from '../../../rules/pools/warm-match.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { PoolRecord } from '../../../store/records/fleet-records.ts'
import type { Entry } from '../../../store/store.ts'
import { existingIn, nothingToChange } from '../../gate/existing.ts'
import { createOnce } from '../../gate/namespace.ts'
import { mustOwn } from '../../gate/ownership.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { configNameProblems } from '../../vms/deployment-problems.ts'
import { configFor } from '../../vms/planned-vm.ts'

const kind = 'pools'
const changeable = 'Set config, minIdle, maxIdle, maxAge, schedule, state, readyCommand or paused'
const defaults = { minIdle: 1, maxAge: '12h' } as const

interface PoolServices {
  readonly collections: Collections
  readonly roles: Roles
}

export function pools(services: PoolServices): HandlersOf<typeof api> {
  const { collections, roles } = services
  const existing = existingIn(collections.pools, kind)

  function own(principal: Principal, namespace: string, name: string): Entry<PoolRecord> {
    const entry = existing(namespace, name)
    mustOwn(principal, roles.roleOf(principal, namespace), { ...entry.value, kind, noun: 'pool' })
    return entry
  }

  async function changeOwn(
    principal: Principal,
    { namespace, pool: name }: { readonly namespace: string; readonly pool: string },
    next: (record: PoolRecord) => PoolRecord,
  ): Promise<Pool> {
    const { key, value } = own(principal, namespace, name)
    const changed = await collections.pools.change(key, (record) =>
      record?.uid === value.uid ? next(record) : undefined,
    )
    if (changed?.value.uid !== value.uid) throw notFound(kind, name, { namespace })
    return poolView(changed)
  }

  /** Refuses configurations whose deployments never take a warm VM. */
  function configProblems(namespace: string, config: string): Cause[] {
    const shape = configFor(collections.vmConfigs, namespace, config)?.shape
    if (!shape) throw notFound('vmconfigs', config, { namespace })
    if (isImageReference(shape.image))
      throw invalid(
        kind,
        [invalidField('config', `config ${config} uses an image of a registry; pull it as an image first`)],
        `Run svc3 remote-image pull ${shape.image} -n ${namespace}, and create a configuration of that image`,
      )
    const never = neverWarm(shape)
    return never === undefined ? [] : [invalidField('config', `config ${config} ${never}; such VMs are never warm`)]
  }

  return {
    listPools: ({ params }) => listing(collections.pools, params.namespace, poolView),

    getPool: ({ params: { namespace, pool } }) => poolView(existing(namespace, pool)),

    async createPool({ params: { namespace }, body, principal, now, requestKey }) {
      const { name, config } = body
      const minIdle = body.minIdle ?? Math.min(defaults.minIdle, body.maxIdle ?? defaults.minIdle)
      const schedule = scheduleOf(body.schedule)
      const maxIdle = body.maxIdle ?? Math.max(minIdle, ...schedule.map((entry) => entry.minIdle))
      const maxAge = body.maxAge ?? defaults.maxAge
      const causes = [
        ...configNameProblems(name),
        ...settingProblems({ minIdle, maxIdle, maxAge, schedule }),
        ...configProblems(namespace, config),
      ]
      if (causes.length > 0) throw invalid(kind, causes, hintFor(causes))
      const record: PoolRecord = {
        name,
        namespace,
        uid: randomUUID(),
        owner: displayName(principal),
        createdAt: timestamp(now),
        ...defined({ requestKey }),
        config,
        minIdle,
        maxIdle,
        maxAgeSeconds: parseTtl(maxAge) ?? 0,
        isPaused: body.paused ?? false,
        ...(schedule.length > 0 && { schedule }),
        ...(body.state === 'memory' && { state: body.state }),
        ...(body.readyCommand && { readyCommand: body.readyCommand }),
        hits: 0,
        misses: 0,
        status: { ready: 0, starting: 0 },
      }
      const nameTaken = () =>
        alreadyExists(kind, name, { namespace, hint: 'Choose another name, or change the pool: svc3 pool update' })
      return poolView(await createOnce(services, namespace, collections.pools, record, nameTaken))
    },

    async updatePool({ params, body, principal }) {
      const { namespace, pool: name } = params
      const { resourceVersion: _, ...change } = body
      if (Object.keys(change).length === 0) throw nothingToChange(kind, name, changeable)
      own(principal, namespace, name)
      const problems = body.config === undefined ? [] : configProblems(namespace, body.config)
      return changeOwn(principal, params, (record) => {
        const next = changedPool(record, body)
        const { maxAge = defaults.maxAge } = body
        const causes = [...settingProblems({ ...next, maxAge }), ...problems]
        if (causes.length > 0) throw invalid(kind, causes, hintFor(causes))
        return next
      })
    },

    rotatePool: ({ params, principal, requestKey }) =>
      changeOwn(principal, params, (record) => {
        // The request may be repeated, because its response was lost in a crash.
        if (requestKey !== undefined && record.rotationKey === requestKey) return record
        const { rotationKey: _, rotation = 0, ...rest } = record
        return { ...rest, rotation: rotation + 1, ...(requestKey !== undefined && { rotationKey: requestKey }) }
      }),

    drainPool: ({ params, principal }) =>
      changeOwn(principal, params, (record) => ({ ...record, isPaused: true, isDrained: true })),

    async deletePool({ params: { namespace, pool: name }, principal }) {
      const entry = own(principal, namespace, name)
      await collections.pools.change(entry.key, (record) => (record?.uid === entry.value.uid ? null : undefined))
      return success(`Pool ${name} deleted from ${namespace}`, { kind, name })
    },
  }
}

function changedPool(
  { isDrained, state: oldState, readyCommand: oldCommand, ...record }: PoolRecord,
  change: PoolChange,
): PoolRecord {
  const { config, minIdle, maxIdle, maxAge, paused, schedule, state = oldState, readyCommand = oldCommand } = change
  return {
    ...record,
    ...(isDrained && paused !== false && { isDrained }),
    ...defined({
      config,
      minIdle,
      maxIdle,
      maxAgeSeconds: maxAge === undefined ? undefined : parseTtl(maxAge),
      isPaused: paused,
      schedule: schedule && scheduleOf(schedule),
    }),
    ...(state === 'memory' && { state }),
    ...(readyCommand && { readyCommand }),
  }
}

const scheduleOf = (schedule: PoolInput['schedule'] = []): Pool['schedule'] =>
  schedule.map(({ timeZone = 'UTC', ...entry }) => ({ ...entry, timeZone }))

interface Settings {
  readonly minIdle: number
  readonly maxIdle: number
  readonly maxAge: string
  readonly schedule?: Pool['schedule']
}

const settingProblems = ({ minIdle, maxIdle, maxAge, schedule = [] }: Settings): Cause[] => [
  ...invalidIf(minIdle > maxIdle, 'minIdle', `minIdle is ${minIdle}, but maxIdle is ${maxIdle}`),
  ...invalidIf(
    (parseTtl(maxAge) ?? 0) < shortestAgeSeconds,
    'maxAge',
    `maxAge "${maxAge}" is not a duration of at least a minute; use 12h, for example`,
  ),
  ...scheduleProblems(schedule, maxIdle).map(({ field, message }) => invalidField(field, message)),
]

const shortestAgeSeconds = 60

/** The command line replaces the general hint about fields with its usage, but shows this one. */
const hintFor = (causes: readonly Cause[]): string =>
  causes.every(({ field }) => field === 'minIdle')
    ? 'Set a lower minIdle (--min-idle), or a higher maxIdle (--max-idle)'
    : 'Correct the fields in details.causes'

function poolView({ value, rev }: Entry<PoolRecord>): Pool {
  const { name, namespace, config, minIdle, maxIdle, maxAgeSeconds, isPaused, hits, misses, status } = value
  const { schedule = [], removed = {}, state = 'running', readyCommand } = value
  return {
    name,
    namespace,
    config,
    minIdle,
    maxIdle,
    maxAge: formatDuration(maxAgeSeconds),
    schedule: [...schedule],
    state,
    ...defined({ readyCommand, reason: status.reason }),
    minIdleNow: schedule.length === 0 ? minIdle : (status.minIdle ?? minIdle),
    paused: isPaused,
    ready: status.ready,
    starting: status.starting,
    hits,
    misses,
    removed: { ...removed },
    owner: value.owner,
    createdAt: value.createdAt,
    resourceVersion: rev,
  }
}
