// svc3 pool create
import { createPool } from '../../../api/vms/pools.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { poolOptions, settingsOf } from './options.ts'

export const command = defineCommand({
  description:
    'Keeps VMs of a VM configuration booted. A deploy that asks for exactly that takes one at once, and it is replaced.',
  arguments: {
    name: { value: 'NAME', description: 'up to 50 lowercase letters, digits and dashes', required: true },
  },
  options: {
    config: { type: 'string', value: 'CONFIG', required: true, description: 'VM configuration of its VMs' },
    ...poolOptions,
    ...namespaced,
    ...printed,
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
  async run(context, { args: { name }, options }) {
    if (!isVmConfigName(name))
      throw new UsageError(
        `Invalid name "${name}"`,
        'Use up to 50 lowercase letters, digits and dashes, with a letter or digit at both ends',
      )
    const body = { name, config: options.config, ...settingsOf(options) }
    const { client, namespace } = await context.connect()
    const record = await client.call(createPool, { params: { namespace }, body, signal: context.signal })
    await context.done(`Pool ${record.name} created in ${namespace}.`, record)
    return 0
  },
})
