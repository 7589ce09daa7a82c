// Push jobs on the wire: the state of a VM on its way to an OCI registry. They stay readable for an hour after their end.
import * as t from 'typebox'
import { Status } from '../errors.ts'
import { inNamespace, listOperation, operation } from '../operation.ts'
import { ExpectedVersion, pushFormats, ResourceVersion, Timestamp } from '../records.ts'

export const pushStatuses = ['Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled'] as const

const Bytes = t.Integer({ minimum: 0 })

/** Skipped: the registry has it already. They count as done. */
export const PushProgress = t.Object(
  {
    bytesTotal: Bytes,
    bytesDone: Bytes,
    bytesSkipped: Bytes,
    percent: t.Integer({ minimum: 0, maximum: 100 }),
    bytesPerSecond: t.Optional(t.Integer({ minimum: 0, description: 'Sent, on average since the sending began' })),
    secondsLeft: t.Optional(t.Integer({ minimum: 0, description: 'At that rate, while it is Running' })),
  },
  { title: 'PushProgress' },
)
export type PushProgress = t.Static<typeof PushProgress>

export const PushJob = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    vm: t.String(),
    image: t.String({ description: 'The whole reference, with its tag' }),
    format: t.Optional(t.Enum([...pushFormats], { description: 'How it is written; `svc3` when left out' })),
    status: t.Enum([...pushStatuses]),
    phase: t.Optional(t.String({ description: 'What is being done, in a few words' })),
    progress: PushProgress,
    digest: t.Optional(t.String({ description: 'Of the manifest in the registry, once it is there' })),
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
  noun,
  method: 'POST',
  path: `${inNamespace}/vms/{vm}/push`,
  allow: 'dev',
  status: 200,
  summary: 'Push the state of an Apple silicon-based VM to an OCI registry',
  description:
    'The VM is frozen for a moment and goes on. The answer names a job, which does the rest. Credentials for the ' +
    "registry have to be in the VM's namespace.",
  involves: 'answer.jobName',
  tells: ['imageReference'],
  body: t.Object({
    resourceVersion: ExpectedVersion,
    imageReference: t.String({
      maxLength: 1_024,
      description: '`<registry_host>/<repository>/<image>[:TAG]`; the tag is `latest` when left out',
    }),
    format: t.Optional(
      t.Enum([...pushFormats], {
        description:
          'Of the image in the registry. `svc3`, when left out: only what changed is sent. `tart`: what tart pulls and ' +
          'runs without this service; for VMs that came from an image of tart, or run on a Mac.',
      }),
    ),
  }),
  response: t.Object({ jobName: t.String() }),
  refuses: ['NotFound', 'Conflict', 'Invalid'],
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
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getPushJob = operation({
  id: 'getPushJob',
  noun,
  method: 'GET',
  path: `${path}/{job}`,
  allow: 'dev',
  status: 200,
  summary: 'Show a push job',
  response: PushJob,
  refuses: ['NotFound'],
  example: { params, response: example },
})

export const cancelPushJob = operation({
  id: 'cancelPushJob',
  noun,
  method: 'DELETE',
  path: `${path}/{job}`,
  allow: 'dev',
  status: 200,
  summary: 'Cancel a push job',
  description: 'What has been sent stays in the registry until that cleans up; no tag points at it.',
  involves: 'params.job',
  response: Status,
  refuses: ['NotFound', 'Conflict'],
  example: {
    params,
    response: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      message: 'push job "vm-push-4k2vx" cancelled',
      code: 200,
      details: { name: 'vm-push-4k2vx', kind: 'pushjobs' },
    },
  },
})
