// svc3 vm extend
import { extendVm, getVm } from '../../../api/vms/vms.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { type Context, defineCommand, namespaced, printed } from '../../command.ts'
import { canAsk, confirm } from '../../confirm.ts'
import { Failure, UsageError } from '../../line/usage.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Sets when the VM ends: at that time it is deleted, with its disk. One that has no end so far is given one only when\nsomebody says yes.',
  arguments: {
    ...vmArgument,
    ttl: { value: 'TTL', description: 'how long from now it lives, such as 2h; 0 for ever', required: true },
  },
  options: {
    yes: { type: 'boolean', description: 'Give an end to a VM that has none, without a question' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm extend demo 2h', does: 'It is deleted in two hours; asks when it had no end so far' },
    { line: 'svc3 vm extend demo 2h --yes', does: 'The same, without a question' },
    { line: 'svc3 vm extend demo 0', does: 'Let it stay until somebody deletes it' },
  ],
  async run(context, { args: { vm: name, ttl }, options: { yes } }) {
    if (ttl !== '0' && !parseDuration(ttl))
      throw new UsageError(`"${ttl}" is not a duration`, 'for example 2h, 30m or 0')
    const { client, namespace } = await context.connect()
    const params = { namespace, vm: name }
    if (ttl !== '0' && !yes) {
      const { expiresAt } = await client.call(getVm, { params, signal: context.signal })
      if (expiresAt === undefined) await askForEnd(context, name, ttl)
    }
    const vm = await client.call(extendVm, { params, body: { ttl }, signal: context.signal })
    const end = vm.expiresAt === undefined ? 'does not end by itself' : `is deleted at ${vm.expiresAt}`
    await context.done(`VM ${name} ${end}.`, vm)
    return 0
  },
})

/** "Extend" sounds like more time: that it would end a VM which was to stay has to be seen. */
async function askForEnd(context: Context, name: string, ttl: string): Promise<void> {
  if (!canAsk(context.host))
    throw new Failure(`vm ${name} has no end so far: this would delete it in ${ttl}`, 'add --yes if that is meant')
  if (!(await confirm(context, `vm ${name} has no end so far; delete it in ${ttl}?`)))
    throw new Failure(`vm ${name} has no end, as before`, 'answer "yes", or add --yes')
}
