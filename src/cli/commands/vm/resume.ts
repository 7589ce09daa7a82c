// svc3 vm resume
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. The guest continues where it was suspended.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm resume demo', does: 'Resume a suspended VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'resume', options.timeout),
})
