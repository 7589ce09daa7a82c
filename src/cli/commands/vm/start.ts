// svc3 vm start
import { defineCommand, namespaced, printed, waiting } from '../../command.ts'
import { changePower } from './parts/power.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Intel-based VMs only. Stop and start together are a reboot; the disk stays.',
  arguments: vmArgument,
  options: { ...waiting, ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm start demo', does: 'Power on a VM that was stopped' }],
  run: (context, { args, options }) => changePower(context, args.vm, 'start', options.timeout),
})
