// Push jobs: pushes of VMs to OCI registries. They can be read for an hour after their end.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ExpectedVersion, pushFormats, ResourceVersion, Timestamp } from '../records.ts'

export const pushStatuses = ['Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled'] as const

const Bytes = t.Integer({ minimum: 0 })

/** Skipped bytes are those that the registry already had. They count as done. */
export const PushProgress = t.Object(
  {
    bytesTotal: Bytes,
    bytesDone: Bytes,
    bytesSkipped: Bytes,
    percent: t.Integer({ minimum: 0, maximum: 100 }),
    bytesPerSecond: t.Optional(t.Integer({ minimum: 0, description: 'Average send rate' })),
    secondsLeft: t.Optional(t.Integer({ minimum: 0, description: 'Remaining time at that rate, while Running' })),
  },
  { title: 'PushProgress' },
)
export type PushProgress = t.Static<typeof PushProgress>

export const PushJob = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    vm: t.String(),
    image: t.String({ description: 'Full reference with tag' }),
    format: t.Optional(t.Enum([...pushFormats], { description: 'Format. Default: `svc3`' })),
    status: t.Enum([...pushStatuses]),
    phase: t.Optional(t.String({ description: 'Current step' })),
    progress: PushProgress,
    waiting: t.Optional(
      t.Object(
        { reason: t.String(), nextTryAt: Timestamp },
        { title: 'PushWaiting', description: 'The registry does not answer: why, and when it is tried next' },
      ),
    ),
    digest: t.Optional(t.String({ description: 'Digest of the manifest in the registry, when pushed' })),
    errorMessage: t.Optional(t.String()),
    owner: t.String(),
    startedAt: Timestamp,
    finishedAt: t.Optional(Timestamp),
    expiresAt: t.Optional(Timestamp),
    resourceVersion: ResourceVersion,
  },
  { title: 'PushJob' },
)
export type PushJob = t.Static<typeof PushJob>

const noun = 'push-jobs'
const operation = operationsOf({ noun, allow: 'dev' })
const path = `${inNamespace}/pushjobs` as const
const params = { namespace: 'svc-default', job: 'vm-push-4k2vx' }
const example = {
  name: 'vm-push-4k2vx',
  namespace: 'svc-default',
  vm: 'vm-cznfv',
  image: 'ghcr.io/acme/ios/sonoma:latest',
  status: 'Running',
  phase: 'sending',
  progress: {
    bytesTotal: 8_400_000_000,
    bytesDone: 5_208_000_000,
    bytesSkipped: 1_200_000_000,
    percent: 62,
    bytesPerSecond: 17_733_333,
    secondsLeft: 180,
  },
  owner: 'ada@example.com',
  startedAt: '2026-11-15T09:00:00Z',
  resourceVersion: '41',
}

export const pushVm = operation({
  id: 'pushVm',
  method: 'POST',
  path: `${inNamespace}/vms/{vm}/push`,
  summary: 'Push the state of an Apple silicon-based VM to an OCI registry',
  description:
    'The VM pauses for a moment. The answer names the push job. Credentials for the ' +
    'registry must be in the namespace of the VM.',
  involves: 'params.vm',
  involvesKind: 'vms',
  past: 'started pushing VM {name} to {imageReference}',
  body: t.Object({
    resourceVersion: ExpectedVersion,
    imageReference: t.String({
      maxLength: 1_024,
      description: '`<registry_host>/<repository>/<image>[:TAG]`. Default tag: `latest`',
    }),
    format: t.Optional(
      t.Enum([...pushFormats], {
        description:
          'Image format. `svc3` (default) sends only changes. `tart` is for tart, ' +
          'for VMs from a tart image or on a Mac.',
      }),
    ),
  }),
  response: t.Object({ jobName: t.String() }),
  refuses: ['Conflict', 'Invalid'],
  example: {
    params: { namespace: 'svc-default', vm: 'vm-cznfv' },
    body: { imageReference: 'ghcr.io/acme/ios/sonoma:latest' },
    response: { jobName: 'vm-push-4k2vx' },
  },
})

export const listPushJobs = listOperation({
  id: 'listPushJobs',
  noun,
  path,
  allow: 'dev',
  summary: 'List the push jobs of a namespace',
  item: PushJob,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getPushJob = operation({
  id: 'getPushJob',
  method: 'GET',
  path: `${path}/{job}`,
  summary: 'Show a push job',
  response: PushJob,
  example: { params, response: example },
})

export const cancelPushJob = operation({
  id: 'cancelPushJob',
  method: 'DELETE',
  path: `${path}/{job}`,
  summary: 'Cancel a push job',
  description: 'Sent content stays in the registry, without a tag, until its cleanup.',
  involves: 'params.job',
  past: 'canceled push job {name}',
  response: Status,
  refuses: ['Conflict'],
  example: {
    params,
    response: success('Push job vm-push-4k2vx canceled', { kind: 'pushjobs', name: 'vm-push-4k2vx' }),
  },
})
