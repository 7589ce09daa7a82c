// svc3 vm revert
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { Failure } from '../../line/usage.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description:
    'Intel-based VMs only. Restarts the VM: it is stopped, and starts anew from the latest state of its image. What was not\nsaved or committed is lost, so a terminal asks first.',
  arguments: vmArgument,
  options: { yes: { type: 'boolean', description: 'Do not ask' }, ...waiting, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm revert demo', does: 'Back to the latest state of its image; asks first' },
    { line: 'svc3 vm revert demo --yes', does: 'The same, without a question' },
  ],
  async run(context, { args, options }) {
    const question = `revert vm ${args.vm} to its image? What is on its disk is lost.`
    if (!options.yes && !(await confirm(context, question)))
      throw new Failure(`vm ${args.vm} was not reverted`, 'answer "yes", or add --yes')
    return changePower(context, args.vm, 'revert', options.timeout)
  },
})
