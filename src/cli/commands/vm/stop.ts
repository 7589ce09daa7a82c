// svc3 vm stop
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. The guest is asked to shut down, and powered off if it does not.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm stop demo', does: 'Stop a VM; its disk is kept' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'stop', options.timeout),
})
