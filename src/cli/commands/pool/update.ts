// svc3 pool update
import { updatePool } from '../../../api/vms/pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { poolOptions, settingsOf } from './options.ts'

export const command = defineCommand({
  description: 'Omitted options stay as they are.',
  arguments: { name: { value: 'POOL', description: 'pool to change', names: 'pools', required: true } },
  options: {
    config: { type: 'string', value: 'CONFIG', description: 'VM configuration of its VMs' },
    ...poolOptions,
    'no-ready-command': { type: 'boolean', description: 'A warm VM is ready when SSH answers' },
    'no-schedule': { type: 'boolean', description: 'Remove the schedule' },
    pause: { type: 'boolean', description: 'Start no warm VMs; those that are there stay' },
    resume: { type: 'boolean', description: 'Start warm VMs again' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 pool update ios --min-idle 4 --max-idle 8', does: 'Keep more VMs ready' },
    { line: 'svc3 pool update ios --pause', does: 'Stop filling a pool' },
  ],
  async run(context, { args: { name: pool }, options }) {
    const { config, pause, resume } = options
    if (pause && resume) throw new UsageError('Specify --pause or --resume, not both')
    if (options['no-ready-command'] && options['ready-command'] !== undefined)
      throw new UsageError('Specify --ready-command or --no-ready-command, not both')
    if (options['no-schedule'] && options.schedule.length > 0)
      throw new UsageError('Specify --schedule or --no-schedule, not both')
    const body = {
      ...(config !== undefined && { config }),
      ...settingsOf(options),
      ...(options['no-ready-command'] && { readyCommand: '' }),
      ...(options['no-schedule'] && { schedule: [] }),
      ...((pause || resume) && { paused: pause === true }),
    }
    if (Object.keys(body).length === 0)
      throw new UsageError(
        'Nothing to change',
        'Specify --min-idle, --max-idle, --max-age, --state, --ready-command, --schedule, --config, --pause or --resume',
      )
    const { client, namespace } = await context.connect()
    const record = await client.call(updatePool, { params: { namespace, pool }, body, signal: context.signal })
    await context.done(`Pool ${record.name} changed in ${namespace}.`, record)
    return 0
  },
})
