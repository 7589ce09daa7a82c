// Waits until a deployed VM runs, and removes it if it fails or takes too long.
import { ApiError, type ErrorOptions } from '../../api/errors.ts'
import type { Condition } from '../../api/vms/vms.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { timeLeft } from '../../rules/durations.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmObserved, VmRecord } from '../../store/records/fleet-records.ts'
import { changeVm, lateDeployment, removeVm } from '../../store/records/vms.ts'
import type { Entry } from '../../store/store.ts'
import { WaitedTooLong, type Waits } from '../nodes/waits.ts'
import { nodesIn } from './deployment.ts'
import { type InterruptionServices, interruptionOf, throwIfInterrupted } from './interruption.ts'

const kind = 'vms'

/** A failure that the agent reported. What a host lacks takes longer to install than clients wait for by themselves. */
export const nodeFailure = ({ isHostUnfit }: Partial<VmObserved>, message: string, options: ErrorOptions): ApiError =>
  isHostUnfit
    ? new ApiError('ServiceUnavailable', message, { ...options, retryAfterSeconds: 3_600 })
    : new ApiError('InternalError', message, options)

export interface AwaitServices extends InterruptionServices {
  readonly collections: Collections
  readonly clock: Clock
  readonly waits: Waits<VmRecord>
}

/** How long the VM of a caller who has left may still start. A client repeats a lost request for up to a minute. */
const abandonedMs = 90_000

/**
 * If this throws because the VM failed or took too long, the VM has been removed. When `gone` aborts, it is removed soon,
 * unless it runs or the request is repeated.
 */
export async function awaitDeployment(
  services: AwaitServices,
  created: Entry<VmRecord>,
  timeoutMs: number,
  { expedite, gone }: { readonly expedite?: AbortSignal | undefined; readonly gone?: AbortSignal | undefined },
): Promise<Entry<VmRecord>> {
  const { key, value } = created
  const end = timestamp(new Date(Date.parse(value.createdAt) + timeoutMs))
  // The controller that expires VMs deletes one that has not run by then. If the store fails, the earlier time remains.
  const awaitUntil = (awaitedUntil: string) =>
    changeVm(services.collections, key, value.uid, (record) => ({ ...record, awaitedUntil })).catch(() => undefined)
  const { name, namespace, uid } = value
  const about = { kind, name }
  let failure: string | undefined
  let observed: Partial<VmObserved> = {}
  let unfit: Condition | undefined
  const isRemoved = (entry: Entry<VmRecord> | undefined): boolean => entry?.value.uid !== uid
  try {
    const running = await services.waits.until(
      key,
      (entry) => {
        if (!entry || isRemoved(entry)) return null
        // This caller waits, and an earlier connection of the same request was lost, perhaps to another server.
        if (gone?.aborted === false && entry.value.awaitedUntil !== end) void awaitUntil(end)
        failure = entry.value.failure
        observed = entry.value.observed
        // The VM may have been stopped again, if an earlier try of this request started it. Until its agent confirms
        // the deployment (generation 0), the VM would refuse the caller's next request as busy.
        if (entry.value.observed.hasRun && entry.value.observed.generation > 0) return entry
        unfit = expedite && unscheduled(entry.value)
        if (unfit !== undefined) throw fitsNowhere(services.collections, value, unfit)
        return undefined
      },
      { ms: timeoutMs, signal: interruptionOf(services, gone ?? expedite) },
    )
    if (running) return running
  } catch (error) {
    throwIfInterrupted(services, value)
    if (gone?.aborted) {
      const soon = timestamp(new Date(services.clock.now().getTime() + abandonedMs))
      await awaitUntil(soon < end ? soon : end)
      throw abandoned(value)
    }
    const isLate = error instanceof WaitedTooLong
    if (!isLate && expedite?.aborted !== true && unfit === undefined) throw error
    const entry = services.collections.vms.at(key)
    if (entry && !isRemoved(entry) && entry.value.observed.hasRun) return entry
    const why = entry && !isRemoved(entry) ? reasonsOf(entry.value) : ''
    const next = nextStep(services.collections, value, entry && unscheduled(entry.value))
    if (entry && !isRemoved(entry)) await removeVm(services.collections, entry, unfit?.message ?? lateDeployment)
    await services.waits.until(key, (left) => isRemoved(left) || undefined, { ms: 60_000 }).catch(() => null)
    if (unfit !== undefined) throw error
    if (!isLate) throw late504(value, `while its client waited${why}`, next)
    throw late504(value, `within ${timeLeft(timeoutMs / 1_000)}${why}`, next)
  }
  if (failure === lateDeployment) throw late504(value, 'in time', nextStep(services.collections, value))
  if (failure !== undefined) {
    // Agents report sentences such as "Could not …", which continue after the name of the VM.
    const outcome = /^Could not /.test(failure) ? `c${failure.slice(1)}` : `could not be deployed: ${failure}`
    throw nodeFailure(observed, `VM ${name} ${outcome}`, {
      ...about,
      hint: `The VM was removed. Run svc3 node list -n ${namespace} to check the nodes`,
    })
  }
  throw new ApiError('Conflict', `VM ${name} in ${namespace} was deleted during its deployment`, {
    ...about,
    hint: 'Deploy it again',
  })
}

function nextStep({ nodes }: Collections, { namespace, reservedPorts }: VmRecord, unfit?: Condition): string {
  if (unfit?.reason === 'OverQuota') return `Run svc3 quota show -n ${namespace} to see what is in use`
  const others = reservedPorts.length > 0 ? ', reserve other --ports' : ''
  for (const _ of nodesIn(nodes, namespace)) return `Run svc3 node list -n ${namespace} to see free capacity${others}`
  return `Run svc3 node namespace NODE ${namespace} to give ${namespace} a node`
}

/** Reaches a caller who has repeated the request, and whose next try waits again. */
const abandoned = ({ name }: VmRecord): ApiError =>
  new ApiError('ServiceUnavailable', `A caller of VM ${name} has left`, { kind, name, retryAfterSeconds: 1 })

const late504 = ({ name }: VmRecord, when: string, next: string): ApiError =>
  new ApiError('Timeout', `VM ${name} was not deployed ${when}`, {
    kind,
    name,
    hint: `The VM was removed. ${next}, or set a longer --timeout`,
  })

/** The scheduler's reason, for a VM without a node. */
const unscheduled = ({ place, conditions }: VmRecord): Condition | undefined =>
  place ? undefined : conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')

const fitsNowhere = (collections: Collections, vm: VmRecord, unfit: Condition): ApiError => {
  const { message, reason } = unfit
  const { name } = vm
  return new ApiError(
    'Conflict',
    `VM ${name} ${reason === 'OverQuota' ? 'is over the quota' : 'fits on no node'} now. ${message}`,
    {
      kind,
      name,
      ...(reason === 'NoFreeCores' && { causes: [{ field: 'cpu', reason: 'FieldValueNotSupported', message }] }),
      hint: `The VM was removed. ${nextStep(collections, vm, unfit)}`,
    },
  )
}

function reasonsOf({ conditions, observed }: VmRecord): string {
  const scheduled = conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')
  if (scheduled) return `. ${scheduled.message}`
  return observed.operation ? `: ${observed.operation.phase}` : ''
}
