// svc3 vm suspend
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. Pauses the guest without shutting it down.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm suspend demo', does: 'Suspend a VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'suspend', options.timeout),
})
