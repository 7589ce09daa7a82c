// svc3 vm start
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. To reboot a VM, stop it and start it; its disk is kept.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm start demo', does: 'Start a stopped VM' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'start', options.timeout),
})
