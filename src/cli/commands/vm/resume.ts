// svc3 vm resume
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. What was suspended goes on where it stood.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm resume demo', does: 'Let a suspended VM go on' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'resume', options.timeout),
})
