// svc3 vm extend
import { extendVm, getVm } from '../../../api/vms/vms.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { UsageError } from '../../line/usage.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'When the time is up, the service deletes the VM with its disk. A terminal asks before it sets a time for a VM that has\nnone.',
  arguments: {
    ...vmArgument,
    ttl: { value: 'TTL', description: 'time left from now, such as 2h; 0 for no limit', required: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm extend demo 2h', does: 'Delete the VM two hours from now' },
    { line: 'svc3 vm extend demo 2h --yes', does: 'The same, without a question' },
    { line: 'svc3 vm extend demo 0', does: 'Remove the time limit' },
  ],
  async run(context, { args: { vm: name, ttl }, options: { yes } }) {
    if (ttl !== '0' && !parseDuration(ttl))
      throw new UsageError(`Invalid TTL "${ttl}"`, 'Specify for example 2h, 30m or 0')
    const { client, namespace } = await context.connect()
    const params = { namespace, vm: name }
    // "Extend" sounds like more time: a VM that was to stay would get less.
    await confirmLoss(context, {
      yes: yes || ttl === '0',
      question: async () => {
        const { expiresAt } = await client.call(getVm, { params, signal: context.signal })
        return expiresAt === undefined ? `VM ${name} has no time limit. Delete it with its disk in ${ttl}?` : undefined
      },
      refused: `VM ${name} still has no time limit`,
    })
    const vm = await client.call(extendVm, { params, body: { ttl }, signal: context.signal })
    const end = vm.expiresAt === undefined ? 'has no time limit' : `will be deleted at ${vm.expiresAt}`
    await context.done(`VM ${name} ${end}.`, vm)
    return 0
  },
})
