// svc3 vm extend
import { extendVm } from '../../../api/vms.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../usage.ts'
import { vmArgument } from './vm-argument.ts'

export const command = defineCommand({
  arguments: {
    ...vmArgument,
    ttl: { value: 'TTL', description: 'how long from now, such as 2h; 0 for ever', required: true },
  },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm extend demo 2h', does: 'Two hours more from now' },
    { line: 'svc3 vm extend demo 0', does: 'Let it stay until somebody deletes it' },
  ],
  async run(context, { args: { vm: name, ttl } }) {
    if (ttl !== '0' && !parseDuration(ttl))
      throw new UsageError(`"${ttl}" is not a duration`, 'for example 2h, 30m or 0')
    const { client, namespace } = await context.connect()
    const params = { namespace, vm: name }
    const vm = await client.call(extendVm, { params, body: { ttl }, signal: context.signal })
    const end = vm.expiresAt === undefined ? 'does not end by itself' : `is deleted at ${vm.expiresAt}`
    await context.done(`VM ${name} ${end}.`, vm)
    return 0
  },
})
