// svc3 runner-pool

import {
  createRunnerPool,
  deleteRunnerPool,
  drainRunnerPool,
  getRunnerPool,
  listRunnerJobs,
  listRunnerPools,
  type RunnerJob,
  type RunnerPool,
  updateRunnerPool,
} from '../../../api/vms/runner-pools.ts'
import { defined } from '../../../platform/defined.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import type { OutputColumn } from '../../output/output.ts'
import type { Field } from '../../output/record.ts'
import { changeCommand, changed, deleteCommand, listCommand, showCommand } from '../../record-commands.ts'
import { credentialOf, credentialOptions, guestOf, settingOptions, settingsOf } from './options.ts'

const columns: readonly OutputColumn<RunnerPool>[] = [
  { header: 'NAME', cell: (pool) => pool.name },
  { header: 'STATE', cell: (pool) => pool.condition.reason },
  { header: 'WAITING', cell: (pool) => pool.waiting },
  { header: 'STARTING', cell: (pool) => pool.starting },
  { header: 'IDLE', cell: (pool) => pool.idle },
  { header: 'RUNNING', cell: (pool) => pool.running },
  { header: 'MAX', cell: (pool) => pool.max },
  { header: 'CONFIG', cell: (pool) => pool.config },
  { header: 'URL', wide: true, cell: (pool) => pool.url },
  { header: 'LABELS', wide: true, cell: (pool) => pool.labels.join(', ') },
  { header: 'QUEUE-P95', wide: true, cell: (pool) => pool.queueSeconds && `${Math.round(pool.queueSeconds.p95)} s` },
  { header: 'MESSAGE', wide: true, cell: (pool) => pool.condition.message },
]

const waitOf = ({ queuedAt, startedAt }: RunnerJob): string | undefined =>
  startedAt === undefined
    ? undefined
    : `${Math.max(0, Math.round((Date.parse(startedAt) - Date.parse(queuedAt)) / 1_000))} s`

const jobColumns: readonly OutputColumn<RunnerJob>[] = [
  { header: 'JOB', cell: (job) => job.name },
  { header: 'REPOSITORY', cell: (job) => job.repository },
  { header: 'STATE', cell: (job) => job.state },
  { header: 'RESULT', cell: (job) => job.result },
  { header: 'VM', cell: (job) => job.runner },
  { header: 'QUEUED', cell: (job) => ({ time: job.queuedAt }) },
  { header: 'WAIT', cell: waitOf },
  { header: 'WORKFLOW', wide: true, cell: (job) => job.workflow },
  { header: 'LINK', wide: true, cell: (job) => job.link },
  { header: 'ID', wide: true, cell: (job) => job.id },
]

const list = listCommand({
  examples: [{ line: 'svc3 runner-pool list -o wide', does: 'List the runner pools of the default namespace' }],
  list: listRunnerPools,
  columns,
  scope: 'all',
})

const fields: readonly Field<RunnerPool>[] = [
  { label: 'Name', value: (pool) => pool.name },
  { label: 'Namespace', value: (pool) => pool.namespace },
  { label: 'State', value: (pool) => pool.condition.reason },
  { label: 'Message', value: (pool) => pool.condition.message },
  { label: 'Since', value: (pool) => ({ time: pool.condition.since }) },
  { label: 'URL', value: (pool) => pool.url },
  { label: 'Scale set', value: (pool) => pool.scaleSet },
  { label: 'Runner group', value: (pool) => pool.group },
  { label: 'Labels', value: (pool) => pool.labels.join(', ') },
  {
    label: 'Credentials',
    value: ({ credential: { kind, appId, installationId } }) =>
      kind === 'token' ? 'token' : `GitHub App ${appId}, installation ${installationId}`,
  },
  { label: 'VM configuration', value: (pool) => pool.config },
  { label: 'Runner folder', value: (pool) => pool.runnerFolder },
  { label: 'User', value: (pool) => pool.user },
  { label: 'Started by', value: ({ sshUser }) => (sshUser === undefined ? 'first-boot data' : `SSH as ${sshUser}`) },
  { label: 'Jobs waiting', value: (pool) => pool.waiting },
  { label: 'Starting', value: (pool) => pool.starting },
  { label: 'Idle', value: (pool) => pool.idle },
  { label: 'Running', value: (pool) => pool.running },
  { label: 'Minimum idle', value: (pool) => pool.minIdle },
  { label: 'Maximum', value: (pool) => pool.max },
  { label: 'Announced', value: (pool) => pool.capacity },
  { label: 'Connect within', value: (pool) => pool.connectWithin },
  { label: 'Idle for', value: (pool) => pool.idleFor },
  {
    label: 'Queue time',
    value: ({ queueSeconds }) => queueSeconds && `p50 ${queueSeconds.p50} s, p95 ${queueSeconds.p95} s`,
  },
  { label: 'Longest wait', value: (pool) => (pool.waiting > 0 ? `${pool.oldestWaitingSeconds} s` : undefined) },
  {
    label: 'Ended',
    value: ({ ended }) =>
      Object.entries(ended)
        .map(([reason, count]) => `${reason} ${count}`)
        .join(', '),
  },
  { label: 'Owner', value: (pool) => pool.owner },
  { label: 'Created', value: (pool) => ({ time: pool.createdAt }) },
]

const describe = showCommand({
  argument: { value: 'RUNNER-POOL', description: 'name of the runner pool' },
  examples: [{ line: 'svc3 runner-pool describe ios', does: 'Show a runner pool and its problems' }],
  get: getRunnerPool,
  fields,
})

const order = { Running: 0, Waiting: 1, Completed: 2 } as const

const jobs = defineCommand({
  description: 'Finished jobs are listed for a day.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'name of the runner pool', required: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 runner-pool jobs ios -o wide', does: 'List the jobs of a runner pool, with links to their runs' },
  ],
  async run(context, { args: { name: runnerpool } }) {
    const { client, namespace } = await context.connect()
    const { signal } = context
    await client.call(getRunnerPool, { params: { namespace, runnerpool }, signal })
    const jobs = await client.listAll(listRunnerJobs, { params: { namespace }, signal })
    const own = jobs
      .filter(({ pool }) => pool === runnerpool)
      .toSorted((a, b) => order[a.state] - order[b.state] || (a.queuedAt < b.queuedAt ? 1 : -1))
    await context.print(own, jobColumns, `No jobs of runner pool ${runnerpool}`)
  },
})

const create = changeCommand({
  description:
    'Runs the jobs of GitHub Actions, each in a fresh VM, which is deleted after it. The image of the VM configuration has the runner in it. Credentials are stored encrypted and never shown.',
  arguments: {
    name: { value: 'NAME', description: 'up to 40 lowercase letters, digits and dashes', required: true },
  },
  options: {
    url: {
      type: 'string',
      value: 'URL',
      required: true,
      description: 'Organization, repository or enterprise, such as https://github.com/acme',
    },
    config: { type: 'string', value: 'CONFIG', required: true, description: 'VM configuration of its VMs' },
    ...credentialOptions,
    'scale-set': { type: 'string', value: 'NAME', description: 'Name at GitHub (default: the name of the pool)' },
    group: { type: 'string', value: 'GROUP', description: 'Runner group (default: Default)' },
    ...settingOptions,
  },
  examples: [
    {
      line: 'svc3 runner-pool create ios --url https://github.com/acme --config ios --app-id 12 --installation-id 34 --private-key acme.pem',
      does: 'Take jobs of an organization with a GitHub App',
    },
    {
      line: 'svc3 runner-pool create ios --url https://github.com/acme/app --config ios --token-stdin --min-idle 1 < token.txt',
      does: 'Take jobs of a repository with a token, and keep one runner waiting',
    },
    {
      line: 'svc3 runner-pool create mac --url https://github.com/acme --config ios --ssh-user ci --ssh-key ci.pem --token-stdin < token.txt',
      does: 'Start runners by SSH, so that they take warm VMs of a pool',
    },
  ],
  change: createRunnerPool,
  body: async ({ args: { name }, options }, context) => {
    if (!isVmConfigName(name) || !/^[a-z]/.test(name))
      throw new UsageError(
        `Invalid name "${name}"`,
        'Use up to 40 lowercase letters, digits and dashes, beginning with a letter',
      )
    const settings = { ...settingsOf(options), ...guestOf(context, options) }
    const credential = await credentialOf(context, options)
    if (!credential)
      throw new UsageError(
        'Credentials for GitHub are required',
        'Specify --app-id, --installation-id and --private-key, or --token-stdin',
      )
    const { url, config, 'scale-set': scaleSet, group } = options
    return { name, url, config, credential, ...defined({ scaleSet, group }), ...settings }
  },
  done: ({ name, namespace }) => `Runner pool ${name} created in ${namespace}.`,
})

const update = changeCommand({
  description: 'Omitted options stay as they are. Jobs that run are not disturbed.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'runner pool to change', required: true } },
  options: {
    config: { type: 'string', value: 'CONFIG', description: 'VM configuration of its VMs' },
    ...credentialOptions,
    ...settingOptions,
    'first-boot': { type: 'boolean', description: 'Start the runner by first-boot data again, and not by SSH' },
    pause: { type: 'boolean', description: 'Take no jobs; they wait at GitHub' },
    resume: { type: 'boolean', description: 'Take jobs again' },
  },
  examples: [
    { line: 'svc3 runner-pool update ios --max 12', does: 'Let more jobs run at once' },
    { line: 'svc3 runner-pool update ios --token-stdin < token.txt', does: 'Replace the credentials' },
    { line: 'svc3 runner-pool update ios --resume', does: 'Take jobs again after a pause' },
  ],
  change: updateRunnerPool,
  body: async ({ options }, context) => {
    const { config, pause, resume, 'first-boot': firstBoot } = options
    if (pause && resume) throw new UsageError('Specify --pause or --resume, not both')
    const credential = await credentialOf(context, options)
    return changed(
      {
        ...defined({ config, credential }),
        ...settingsOf(options),
        ...guestOf(context, options),
        ...(firstBoot && { firstBoot }),
        ...((pause || resume) && { paused: pause }),
      },
      'Specify --max, --min-idle, --config, credentials, --pause or --resume',
    )
  },
  done: ({ name, namespace }) => `Runner pool ${name} changed in ${namespace}.`,
})

const poolArgument = (description: string) => ({ name: { value: 'RUNNER-POOL', description, required: true } }) as const

const pause = changeCommand({
  description:
    'Jobs wait at GitHub. Those that run end undisturbed, and idle runners stay. svc3 runner-pool update --resume takes jobs again.',
  arguments: poolArgument('runner pool to pause'),
  examples: [{ line: 'svc3 runner-pool pause ios', does: 'Pause the runner pool' }],
  change: updateRunnerPool,
  body: () => ({ paused: true }),
  done: ({ name, namespace }) => `Runner pool ${name} paused in ${namespace}.`,
})

const drain = changeCommand({
  description:
    'Jobs wait at GitHub, and those that run end undisturbed. svc3 runner-pool update --resume takes jobs again.',
  arguments: poolArgument('runner pool to drain'),
  examples: [{ line: 'svc3 runner-pool drain ios', does: 'Pause a runner pool and remove its idle runners' }],
  change: drainRunnerPool,
  done: ({ name, namespace }) => `Runner pool ${name} is being drained in ${namespace}.`,
})

const deletePools = deleteCommand({
  description: 'Jobs that run end first; then the scale set at GitHub and the pool are deleted.',
  examples: [{ line: 'svc3 runner-pool delete ios', does: 'Delete a runner pool' }],
  remove: deleteRunnerPool,
  options: { force: { type: 'boolean', description: 'Also delete VMs with running jobs, and do not wait for GitHub' } },
  query: ({ force }) => (force ? { force: true } : {}),
  question: (pools, { session: { namespace }, options: { force } }) =>
    `Delete ${pools} in ${namespace}${force ? ', with running jobs' : ''}?`,
  sentence: (name, namespace) => `Runner pool ${name} is being deleted from ${namespace}`,
})

export const commands = {
  list,
  describe,
  jobs,
  create,
  update,
  pause,
  drain,
  delete: deletePools,
}
