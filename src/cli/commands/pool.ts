// svc3 pool

import {
  createPool,
  deletePool,
  drainPool,
  getPool,
  listPools,
  type Pool,
  type PoolInput,
  rotatePool,
  updatePool,
} from '../../api/vms/pools.ts'
import { defined } from '../../platform/defined.ts'
import { parseScheduleLine, scheduleLine } from '../../rules/pools/schedule-line.ts'
import type { OptionValues } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import { noteFew } from '../note-few.ts'
import type { OutputColumn } from '../output/output.ts'
import type { Field } from '../output/record.ts'
import { changeCommand, changed, deleteCommand, listCommand, showCommand } from '../record-commands.ts'
import { checkConfigName } from './vm-config.ts'

const poolOptions = {
  'min-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Warm VMs to keep ready' },
  'max-idle': { type: 'integer', value: 'N', min: 0, max: 1_000, description: 'Remove warm VMs above this number' },
  'max-age': { type: 'duration', value: 'DURATION', description: 'Replace warm VMs after this time, such as 12h' },
  state: {
    type: 'choice',
    choices: ['running', 'memory'],
    description: 'How warm VMs wait: running (default), or as memory on disk, without cores of the node',
  },
  'ready-command': {
    type: 'string',
    value: 'COMMAND',
    description: 'Shell command that passes in the guest when a warm VM is ready (default: SSH answers)',
  },
  schedule: {
    type: 'string',
    value: 'CRON[ ZONE]=N',
    repeatable: true,
    description: 'Keep N ready from then on, such as "0 7 * * mon-fri Europe/Berlin=4" (zone: UTC)',
  },
} as const

function settingsOf(options: OptionValues<typeof poolOptions>) {
  const { 'min-idle': minIdle, 'max-idle': maxIdle, schedule } = options
  if (minIdle !== undefined && maxIdle !== undefined && minIdle > maxIdle)
    throw new UsageError(`--min-idle ${minIdle} is more than --max-idle ${maxIdle}`, 'Raise --max-idle')
  return defined({
    minIdle,
    maxIdle,
    maxAge: options['max-age'],
    state: options.state,
    readyCommand: options['ready-command'],
    schedule: schedule.length > 0 ? schedule.map(entryOf) : undefined,
  })
}

function entryOf(text: string): NonNullable<PoolInput['schedule']>[number] {
  const entry = parseScheduleLine(text)
  if (entry) return entry
  throw new UsageError(
    `Invalid --schedule "${text}"`,
    'Specify minute, hour, day, month, weekday, a time zone and a number: "0 7 * * mon-fri Europe/Berlin=4"',
  )
}

const columns: readonly OutputColumn<Pool>[] = [
  { header: 'NAME', cell: (pool) => pool.name },
  { header: 'CONFIG', cell: (pool) => pool.config },
  { header: 'READY', cell: (pool) => pool.ready },
  { header: 'STARTING', cell: (pool) => pool.starting },
  { header: 'MIN-IDLE', cell: (pool) => pool.minIdleNow },
  { header: 'MAX-IDLE', cell: (pool) => pool.maxIdle },
  { header: 'HITS', cell: (pool) => pool.hits },
  { header: 'MISSES', cell: (pool) => pool.misses },
  { header: 'PAUSED', wide: true, cell: (pool) => pool.paused },
  { header: 'MAX-AGE', wide: true, cell: (pool) => pool.maxAge },
  { header: 'OWNER', wide: true, cell: (pool) => pool.owner },
  { header: 'REASON', wide: true, cell: (pool) => pool.reason },
]

const list = listCommand({
  examples: [{ line: 'svc3 pool list -o wide', does: 'List the pools of the default namespace' }],
  list: listPools,
  columns,
  scope: 'all',
  notes: ({ format, note }, pools, { sameTargetFlags }) => {
    // The wide table has a column for the reason.
    if (format === 'wide') return
    const reasons = pools.flatMap(({ name, reason }) => (reason ? [`Pool ${name} is not full: ${reason}`] : []))
    noteFew({ note }, reasons, `run svc3 pool list -o wide${sameTargetFlags} to see why`)
  },
})

const fields: readonly Field<Pool>[] = [
  { label: 'Name', value: (pool) => pool.name },
  { label: 'Namespace', value: (pool) => pool.namespace },
  { label: 'VM configuration', value: (pool) => pool.config },
  { label: 'Ready', value: (pool) => pool.ready },
  { label: 'Starting', value: (pool) => pool.starting },
  { label: 'Reason', value: (pool) => pool.reason },
  { label: 'Minimum idle', value: (pool) => pool.minIdle },
  {
    label: 'Schedule',
    value: ({ schedule }) => schedule.map(scheduleLine).join(', '),
  },
  { label: 'Minimum idle now', value: (pool) => (pool.schedule.length > 0 ? pool.minIdleNow : undefined) },
  { label: 'Maximum idle', value: (pool) => pool.maxIdle },
  { label: 'Maximum age', value: (pool) => pool.maxAge },
  { label: 'Warm VMs', value: (pool) => (pool.state === 'memory' ? 'as memory on disk' : pool.state) },
  { label: 'Readiness command', value: (pool) => pool.readyCommand },
  { label: 'Paused', value: (pool) => (pool.paused ? 'yes' : 'no') },
  { label: 'Hits', value: (pool) => pool.hits },
  { label: 'Misses', value: (pool) => pool.misses },
  {
    label: 'Removed',
    value: ({ removed }) =>
      Object.entries(removed)
        .map(([reason, count]) => `${reason} ${count}`)
        .join(', '),
  },
  { label: 'Owner', value: (pool) => pool.owner },
  { label: 'Created', value: (pool) => ({ time: pool.createdAt }) },
]

const describe = showCommand({
  argument: { value: 'POOL', description: 'name of the pool', names: 'pools' },
  examples: [{ line: 'svc3 pool describe ios', does: 'Show a pool, and why it is not full' }],
  get: getPool,
  fields,
})

const create = changeCommand({
  description:
    'Keeps VMs of a VM configuration booted. A deploy that asks for exactly that takes one at once, and it is replaced.',
  arguments: {
    name: { value: 'NAME', description: 'up to 50 lowercase letters, digits and dashes', required: true },
  },
  options: {
    config: { type: 'string', value: 'CONFIG', required: true, description: 'VM configuration of its VMs' },
    ...poolOptions,
  },
  examples: [
    {
      line: 'svc3 pool create ios --config ios-build --min-idle 2 --max-idle 4',
      does: 'Keep two VMs ready for builds',
    },
    {
      line: 'svc3 pool create ios --config ios-build --schedule "0 7 * * mon-fri Europe/Berlin=4" --schedule "0 19 * * * Europe/Berlin=0"',
      does: 'Keep four ready on working days, none at night',
    },
    {
      line: 'svc3 pool create linux --config linux-build --min-idle 20 --state memory',
      does: 'Keep twenty on disk, without cores and memory of their nodes',
    },
    {
      line: 'svc3 pool create ios --config ios-build --ready-command "test -e /var/run/build-agent.ready"',
      does: 'Hand out VMs once a command of yours passes in them',
    },
  ],
  change: createPool,
  body: ({ args: { name }, options }) => ({
    name: checkConfigName(name),
    config: options.config,
    ...settingsOf(options),
  }),
  done: ({ name, namespace }) => `Pool ${name} created in ${namespace}.`,
})

const update = changeCommand({
  description: 'Omitted options stay as they are.',
  arguments: { name: { value: 'POOL', description: 'pool to change', names: 'pools', required: true } },
  options: {
    config: { type: 'string', value: 'CONFIG', description: 'VM configuration of its VMs' },
    ...poolOptions,
    'no-ready-command': { type: 'boolean', description: 'A warm VM is ready when SSH answers' },
    'no-schedule': { type: 'boolean', description: 'Remove the schedule' },
    pause: { type: 'boolean', description: 'Start no warm VMs; those that are there stay' },
    resume: { type: 'boolean', description: 'Start warm VMs again' },
  },
  examples: [
    { line: 'svc3 pool update ios --min-idle 4 --max-idle 8', does: 'Keep more VMs ready' },
    { line: 'svc3 pool update ios --pause', does: 'Stop filling a pool' },
  ],
  change: updatePool,
  body: ({ options }) => {
    const { config, pause, resume } = options
    if (pause && resume) throw new UsageError('Specify --pause or --resume, not both')
    if (options['no-ready-command'] && options['ready-command'] !== undefined)
      throw new UsageError('Specify --ready-command or --no-ready-command, not both')
    if (options['no-schedule'] && options.schedule.length > 0)
      throw new UsageError('Specify --schedule or --no-schedule, not both')
    return changed(
      {
        ...defined({ config }),
        ...settingsOf(options),
        ...(options['no-ready-command'] && { readyCommand: '' }),
        ...(options['no-schedule'] && { schedule: [] }),
        ...((pause || resume) && { paused: pause }),
      },
      'Specify --min-idle, --max-idle, --max-age, --state, --ready-command, --schedule, --config, --pause or --resume',
    )
  },
  done: ({ name, namespace }) => `Pool ${name} changed in ${namespace}.`,
})

const poolArgument = (description: string) =>
  ({ name: { value: 'POOL', description, names: 'pools', required: true } }) as const

const rotate = changeCommand({
  description: 'A quarter of the pool at a time. Those that are not replaced yet are still handed out.',
  arguments: poolArgument('pool to rotate'),
  examples: [{ line: 'svc3 pool rotate ios', does: 'Replace all warm VMs of a pool' }],
  change: rotatePool,
  done: ({ name, namespace }) => `Pool ${name} is being rotated in ${namespace}.`,
})

const drain = changeCommand({
  description: 'VMs that came from it are kept. svc3 pool update --resume fills it again.',
  arguments: poolArgument('pool to drain'),
  examples: [{ line: 'svc3 pool drain ios', does: 'Pause a pool and remove its warm VMs' }],
  change: drainPool,
  done: ({ name, namespace }) => `Pool ${name} is being drained in ${namespace}.`,
})

const deletePools = deleteCommand({
  description: 'Its warm VMs go with it. VMs that came from it are kept.',
  examples: [{ line: 'svc3 pool delete ios', does: 'Delete a pool' }],
  remove: deletePool,
})

export const commands = {
  list,
  describe,
  create,
  update,
  rotate,
  drain,
  delete: deletePools,
}
