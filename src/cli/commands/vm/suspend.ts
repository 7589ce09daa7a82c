// svc3 vm suspend
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. Everything in the guest stands still; nothing is turned off.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm suspend demo', does: 'Put a VM on hold' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'suspend', options.timeout),
})
