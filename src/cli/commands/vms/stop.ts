// svc3 vm stop
import { defineCommand, namespaced, printed } from '../../command.ts'
import { changePower } from './power.ts'
import { vmArgument } from './vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. The guest is asked to end, and switched off when it does not.',
  arguments: vmArgument,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm stop demo', does: 'Power a VM off; its disk stays' }],
  run: (context, { args }) => changePower(context, args.vm, 'stop'),
})
