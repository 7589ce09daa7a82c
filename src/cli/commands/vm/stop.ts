// svc3 vm stop
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. The guest is asked to end, and switched off when it does not.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm stop demo', does: 'Power a VM off; its disk stays' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'stop', options.timeout),
})
