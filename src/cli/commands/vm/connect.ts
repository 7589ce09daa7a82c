// svc3 vm connect
import { defineCommand, namespaced } from '../../command.ts'
import { vmArgument } from './parts/vm-argument.ts'
import { awaitGreeting } from './reach/greeting.ts'
import { dialerFor, vmPorts } from './reach/reach.ts'
import { splice } from './reach/splice.ts'

export const command = defineCommand({
  description: 'Connects standard input and output to a port of a VM, through the service. For ssh and other programs.',
  arguments: vmArgument,
  options: {
    port: { type: 'choice', choices: vmPorts, default: 'ssh', description: 'Port to connect to' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 vm connect demo', does: 'Connect to its SSH server' },
    { line: 'svc3 vm connect demo --port vnc', does: 'Connect to its screen (RFB)' },
  ],
  async run(context, { args, options: { port } }) {
    const { namespace, sameTargetFlags } = await context.connect()
    const dial = dialerFor(context, { namespace, vm: args.vm, port })
    const stream =
      port === 'ssh' ? await awaitGreeting(context, dial, { vm: args.vm, sameTargetFlags }) : await dial(context.signal)
    await splice(context.host, stream)
  },
})
