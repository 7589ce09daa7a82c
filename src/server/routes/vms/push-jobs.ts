// Handlers of push jobs. A job is written before the node freezes the VM. The agent then pushes the image and reports
// its progress. A finished job is kept for an hour (docs/spec.md R40).
import { randomBytes, randomUUID } from 'node:crypto'
import { type ApiError, conflict, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/push-jobs.ts'
import type { PushJob } from '../../../api/vms/push-jobs.ts'
import { displayName } from '../../../auth/principal.ts'
import { type Clock, timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { failpoint } from '../../../platform/failpoint.ts'
import { retry, retryPolicies } from '../../../platform/retry.ts'
import { nameSuffix } from '../../../rules/names.ts'
import { expiryOf } from '../../../rules/retention.ts'
import { dropCapture } from '../../../store/records/captures.ts'
import { changePushJob, nothingYet, type PushJobRecord } from '../../../store/records/push-jobs.ts'
import { type Entry, ignoreLost, isFault } from '../../../store/store.ts'
import { existingIn } from '../../gate/existing.ts'
import { createInside } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type RegistryServices, referenceOf, requirePushCredentials } from '../../remotes/registries.ts'
import { attach, type CaptureServices } from '../../vms/captures.ts'
import { assertMay } from '../../vms/refusals.ts'

const kind = 'pushjobs'

type PushServices = CaptureServices & RegistryServices & { readonly clock: Clock }

export function pushJobs(services: PushServices): HandlersOf<typeof api> {
  const { collections, clock } = services
  const jobs = collections.pushJobs
  const existing = existingIn(jobs, kind)

  function create(record: Omit<PushJobRecord, 'name'>): Promise<Entry<PushJobRecord>> {
    const attempt = () => {
      const name = `vm-push-${nameSuffix(randomBytes(5))}`
      return createInside(services, record.namespace, jobs, name, { ...record, name })
    }
    const isTaken = (error: unknown): boolean => isFault(error, 'AlreadyExists')
    return retry(attempt, { policy: retryPolicies.conflict, isRetriable: isTaken })
  }

  return {
    async pushVm({ params: { namespace, vm: name }, body, principal, now, requestKey }) {
      const vm = collections.vms.get(namespace, name)
      if (!vm) throw notFound('vms', name, { namespace })
      const { uid, desired } = vm.value
      const earlier = jobs.list(namespace).find(({ value }) => requestKey && value.requestKey === requestKey)
      const isRepeated = requestKey !== undefined && desired.requestKey === requestKey
      if (earlier && isRepeated) return { jobName: earlier.value.name }
      if (!isRepeated) assertMay('push', vm.value)
      const reference = referenceOf(body.imageReference)
      await requirePushCredentials(services, namespace, reference)
      const job =
        earlier ??
        (await create({
          namespace,
          vm: name,
          vmUid: uid,
          image: reference.text,
          ...defined({ format: body.format, requestKey }),
          owner: displayName(principal),
          capture: randomUUID(),
          status: 'Pending',
          phase: `waiting for node ${vm.value.place?.node}`,
          progress: nothingYet,
          startedAt: timestamp(now),
        }))
      failpoint('push.recorded')
      const { capture: id, image, format, startedAt: createdAt } = job.value
      try {
        // The memory is omitted: it would be uploaded in full each time, and runs only on the same kind of host.
        const capture = {
          id,
          kind: 'push',
          withMemory: false,
          job: job.value.name,
          reference: image,
          createdAt,
        } as const
        await attach(services, vm, { ...capture, ...defined({ format }) }, requestKey)
      } catch (error) {
        await jobs.delete(job).catch(ignoreLost)
        throw error
      }
      return { jobName: job.value.name }
    },

    listPushJobs: ({ params }) => listing(jobs, params.namespace, pushJobView),

    getPushJob: ({ params: { namespace, job } }) => pushJobView(existing(namespace, job)),

    async cancelPushJob({ params: { namespace, job: name } }) {
      const { key, value } = existing(namespace, name)
      const finishedAt = timestamp(clock.now())
      const cancelled = { status: 'Cancelled', errorMessage: 'Cancelled', finishedAt } as const
      if (!(await changePushJob(jobs, key, () => cancelled))) throw alreadyEnded(existing(namespace, name).value)
      const vm = collections.vms.get(namespace, value.vm)
      if (vm?.value.uid === value.vmUid) await dropCapture(collections, vm, value.capture)
      return success(`Push job ${name} cancelled`, { kind, name })
    },
  }
}

function pushJobView({ value, rev }: Entry<PushJobRecord>): PushJob {
  const { vmUid: _, capture: __, requestKey: ___, sending: ____, waiting, ...rest } = value
  const { finishedAt } = value
  const { secondsLeft, ...progress } = value.progress
  return {
    ...rest,
    progress: { ...progress, ...(finishedAt === undefined && secondsLeft !== undefined && { secondsLeft }) },
    ...(finishedAt === undefined && waiting && { waiting }),
    ...(finishedAt !== undefined && { expiresAt: timestamp(expiryOf('pushJob', finishedAt)) }),
    resourceVersion: rev,
  }
}

function alreadyEnded({ name, namespace, status }: PushJobRecord): ApiError {
  const hint = `Run svc3 vm get-push-status ${name} -n ${namespace} to see how it ended`
  return conflict(kind, name, `has already ended: ${status}`, hint)
}
