// Runner pools: VMs that each run one job of GitHub Actions. No response schema has a field for a credential.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ExpectedVersion, Flag, ResourceVersion, Timestamp } from '../records.ts'

/** Ends that count as failures. Repeated failures make the pool rest. */
const runnerFailures = [
  'NotConnected',
  'GuestEnded',
  'DeployFailed',
  'StartFailed',
  'RunnerGone',
  'RegistrationFailed',
] as const
const runnerEnds = [
  'Finished',
  'Idle',
  'Drained',
  'Deleted',
  'VmDeleted',
  ...runnerFailures,
  'RegistrationLost',
] as const
export type RunnerEndReason = (typeof runnerEnds)[number]

export const isRunnerFailure = (reason: RunnerEndReason): boolean => runnerFailures.some((each) => each === reason)

const Count = (description: string) => t.Integer({ minimum: 0, description })

export const RunnerPool = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    url: t.String({ description: 'Organization, repository or enterprise whose jobs it runs' }),
    scaleSet: t.String({ description: 'Name of the scale set at GitHub' }),
    labels: t.Array(t.String(), { description: 'What `runs-on` names' }),
    group: t.String({ description: 'Runner group' }),
    credential: t.Object(
      {
        kind: t.Enum(['app', 'token']),
        appId: t.Optional(t.String()),
        installationId: t.Optional(t.String()),
      },
      { description: 'Without the private key or the token' },
    ),
    config: t.String({ description: 'VM configuration of its VMs' }),
    minIdle: t.Integer({ description: 'Runners that wait for jobs' }),
    max: t.Integer({ description: 'VMs at most' }),
    connectWithin: t.String({ description: 'A VM whose runner does not connect in this time is replaced' }),
    idleFor: t.String({ description: 'Runners above minIdle are removed after this time without a job' }),
    runnerFolder: t.String({ description: 'Where the runner is in the image' }),
    user: t.Optional(t.String({ description: 'User of the guest that runs it' })),
    sshUser: t.Optional(t.String({ description: 'It is started by SSH as this user; without it, by first-boot data' })),
    paused: t.Boolean(),
    deleting: t.Boolean({ description: 'It is deleted when its last job has ended' }),
    waiting: Count('Jobs without a runner'),
    starting: Count('VMs whose runner has not connected yet'),
    idle: Count('Runners that wait for a job'),
    running: Count('Runners with a job'),
    capacity: Count('Runners in total, as announced to GitHub'),
    queueSeconds: t.Optional(
      t.Object(
        { p50: t.Number(), p95: t.Number() },
        { description: 'From queue to runner, of the jobs that are listed' },
      ),
    ),
    oldestWaitingSeconds: Count('Age of the job that has waited longest for a runner; 0 if none waits'),
    ended: t.Partial(t.Record(t.Enum(runnerEnds), t.Integer()), { description: 'Ended runners by reason' }),
    condition: t.Object(
      {
        reason: t.String({ description: '`Ready`, or what is wrong in one word' }),
        message: t.String(),
        since: Timestamp,
      },
      { description: 'Whether it gets jobs, and why not' },
    ),
    owner: t.String(),
    createdAt: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'RunnerPool' },
)
export type RunnerPool = t.Static<typeof RunnerPool>

const settings = {
  minIdle: t.Optional(t.Integer({ minimum: 0, maximum: 1_000, description: 'Runners that wait for jobs. Default: 0' })),
  max: t.Optional(t.Integer({ minimum: 1, maximum: 1_000, description: 'VMs at most. Default: 10' })),
  labels: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 100 }), {
      minItems: 1,
      maxItems: 20,
      description: 'What `runs-on` names. Default: the name of the scale set',
    }),
  ),
  connectWithin: t.Optional(t.String({ maxLength: 64, description: 'Default: `3m`' })),
  idleFor: t.Optional(t.String({ maxLength: 64, description: 'Default: `5m`' })),
  runnerFolder: t.Optional(t.String({ maxLength: 256, description: 'Default: `/opt/actions-runner`' })),
  user: t.Optional(t.String({ maxLength: 64, description: 'User of the guest that runs the runner. Default: root' })),
  ssh: t.Optional(
    t.Object(
      {
        user: t.String({ maxLength: 64 }),
        password: t.Optional(t.String({ maxLength: 1_024, writeOnly: true })),
        privateKey: t.Optional(t.String({ maxLength: 16_384, writeOnly: true, description: 'Instead of a password' })),
      },
      {
        description:
          'Start the runner by SSH as this user, who is root or may use sudo. Stored encrypted, never returned',
      },
    ),
  ),
}

const Credential = t.Object(
  {
    appId: t.Optional(t.String({ maxLength: 64, description: 'Id or client id of the GitHub App' })),
    installationId: t.Optional(t.String({ maxLength: 32, description: 'Of the App in the organization' })),
    privateKey: t.Optional(t.String({ maxLength: 16_384, writeOnly: true, description: 'Of the App, PEM' })),
    token: t.Optional(t.String({ maxLength: 1_024, writeOnly: true, description: 'Personal access token, instead' })),
  },
  { description: 'A GitHub App (appId, installationId, privateKey) or a token. Stored encrypted, never returned' },
)
export type RunnerCredentialInput = t.Static<typeof Credential>

export const RunnerPoolInput = t.Object(
  {
    name: t.String({ maxLength: 256 }),
    url: t.String({ maxLength: 300, description: 'For example `https://github.com/acme`' }),
    config: t.String({ maxLength: 64, description: 'A VM configuration' }),
    credential: Credential,
    scaleSet: t.Optional(t.String({ maxLength: 100, description: 'Default: the name of the pool' })),
    group: t.Optional(t.String({ maxLength: 100, description: 'Runner group. Default: `Default`' })),
    ...settings,
  },
  { title: 'RunnerPoolInput' },
)
export type RunnerPoolInput = t.Static<typeof RunnerPoolInput>

export const RunnerPoolChange = t.Object(
  {
    config: t.Optional(t.String({ maxLength: 64 })),
    credential: t.Optional(Credential),
    ...settings,
    firstBoot: t.Optional(t.Boolean({ description: 'Start the runner by first-boot data again, and not by SSH' })),
    paused: t.Optional(t.Boolean({ description: 'Take no jobs and start no VMs; jobs wait at GitHub' })),
    resourceVersion: ExpectedVersion,
  },
  { title: 'RunnerPoolChange' },
)
export type RunnerPoolChange = t.Static<typeof RunnerPoolChange>

export const RunnerJob = t.Object(
  {
    id: t.String(),
    pool: t.String(),
    namespace: t.String(),
    name: t.String(),
    repository: t.String(),
    workflow: t.String(),
    event: t.String({ description: 'What started the run, such as `push`' }),
    link: t.String({ description: 'The run at GitHub, or the runs of the repository' }),
    state: t.Enum(['Waiting', 'Running', 'Completed']),
    result: t.Optional(t.String({ description: 'As GitHub says; `unknown` if it did not' })),
    runner: t.Optional(t.String({ description: 'Name of the runner and of its VM' })),
    queuedAt: Timestamp,
    startedAt: t.Optional(Timestamp),
    finishedAt: t.Optional(Timestamp),
  },
  { title: 'RunnerJob' },
)
export type RunnerJob = t.Static<typeof RunnerJob>

const noun = 'runner-pools'
const operation = operationsOf({ noun, response: RunnerPool })
const change = operationsOf({ noun, response: RunnerPool, allow: 'admin', involves: 'params.runnerpool' })
const path = `${inNamespace}/runnerpools` as const
const params = { namespace: 'svc-default', runnerpool: 'ios' }
const example = {
  name: 'ios',
  namespace: 'svc-default',
  url: 'https://github.com/acme',
  scaleSet: 'ios',
  labels: ['ios'],
  group: 'Default',
  credential: { kind: 'app', appId: '123456', installationId: '7654321' },
  config: 'ios-build',
  minIdle: 1,
  max: 8,
  connectWithin: '3m',
  idleFor: '5m',
  runnerFolder: '/opt/actions-runner',
  paused: false,
  deleting: false,
  waiting: 0,
  starting: 1,
  idle: 1,
  running: 3,
  capacity: 8,
  queueSeconds: { p50: 21, p95: 64 },
  oldestWaitingSeconds: 0,
  ended: { Finished: 412, Idle: 9 },
  condition: { reason: 'Ready', message: 'Waiting for jobs', since: '2026-11-17T09:00:00Z' },
  owner: 'admin@example.com',
  createdAt: '2026-11-17T08:59:00Z',
  resourceVersion: '61',
}

export const listRunnerPools = listOperation({
  id: 'listRunnerPools',
  noun,
  path,
  allow: 'dev',
  summary: 'List the runner pools of a namespace',
  item: RunnerPool,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getRunnerPool = operation({
  id: 'getRunnerPool',
  method: 'GET',
  path: `${path}/{runnerpool}`,
  allow: 'dev',
  isDerived: true,
  summary: 'Show a runner pool',
  example: { params, response: example },
})

export const listRunnerJobs = listOperation({
  id: 'listRunnerJobs',
  noun,
  path: `${inNamespace}/runnerjobs`,
  allow: 'dev',
  summary: 'List the jobs of the runner pools of a namespace',
  item: RunnerJob,
  example: {
    params: { namespace: 'svc-default' },
    item: {
      id: '6ab0e2a4-5bd5-5a1c-8a0e-0f6f2b1f7f0c',
      pool: 'ios',
      namespace: 'svc-default',
      name: 'build (16.2)',
      repository: 'acme/app',
      workflow: 'acme/app/.github/workflows/ci.yml@refs/heads/main',
      event: 'push',
      link: 'https://github.com/acme/app/actions',
      state: 'Running',
      runner: 'ios-4k2vx',
      queuedAt: '2026-11-17T09:00:00Z',
      startedAt: '2026-11-17T09:00:21Z',
    },
  },
})

export const createRunnerPool = operation({
  id: 'createRunnerPool',
  method: 'POST',
  path,
  allow: 'admin',
  status: 201,
  summary: 'Create a pool of runners for GitHub Actions',
  description: 'Every job gets a fresh VM, which is deleted after it. The image must have the runner in it.',
  involves: 'body.name',
  past: 'created runner pool {name}',
  tells: ['url', 'config'],
  body: RunnerPoolInput,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params: { namespace: 'svc-default' },
    body: {
      name: 'ios',
      url: 'https://github.com/acme',
      config: 'ios-build',
      credential: { token: 'a-token' },
      max: 8,
      minIdle: 1,
    },
    response: example,
  },
})

export const updateRunnerPool = change({
  id: 'updateRunnerPool',
  method: 'PUT',
  path: `${path}/{runnerpool}`,
  isDerived: true,
  summary: 'Change, pause or resume a runner pool',
  description: 'Omitted fields stay as they are. Jobs that run are not disturbed; new VMs are made as changed.',
  past: 'changed runner pool {name}',
  tells: ['config', 'paused', 'max', 'minIdle'],
  isIdempotent: true,
  body: RunnerPoolChange,
  refuses: ['BadRequest', 'Invalid', 'Conflict'],
  example: { params, body: { max: 8 }, response: example },
})

export const drainRunnerPool = change({
  id: 'drainRunnerPool',
  method: 'POST',
  path: `${path}/{runnerpool}/drain`,
  isDerived: true,
  summary: 'Pause a runner pool and remove its idle runners',
  description: 'Jobs that run end undisturbed. Set `paused` to false to take jobs again.',
  past: 'drained runner pool {name}',
  isIdempotent: true,
  refuses: ['Conflict'],
  example: { params, response: { ...example, paused: true, idle: 0 } },
})

export const deleteRunnerPool = change({
  id: 'deleteRunnerPool',
  method: 'DELETE',
  path: `${path}/{runnerpool}`,
  summary: 'Delete a runner pool',
  description: 'Jobs that run end first. Then its scale set at GitHub and the pool are deleted.',
  past: 'deleted runner pool {name}',
  query: t.Object({ force: Flag('Delete the VMs of jobs that run, too, and do not wait for GitHub') }),
  response: Status,
  example: {
    params,
    response: success('Runner pool ios is being deleted from svc-default', { kind: 'runnerpools', name: 'ios' }),
  },
})
