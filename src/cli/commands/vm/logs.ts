// svc3 vm logs
import { getVmLogs } from '../../../api/vms/vms.ts'
import { defineCommand, namespaced } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'What the guest writes to its serial console: its boot messages, and what it prints there later.',
  arguments: vmArgument,
  options: {
    follow: { type: 'boolean', short: 'f', description: 'Go on as it writes more, until Ctrl-C' },
    tail: { type: 'integer', value: 'LINES', min: 0, max: 100_000, description: 'Only so many lines from the end' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 vm logs demo', does: 'All of it' },
    { line: 'svc3 vm logs demo --tail 20 --follow', does: 'The end, and what comes' },
  ],
  async run(context, { args, options: { follow, tail } }) {
    const { host, signal } = context
    const { client, namespace } = await context.connect()
    const query = { ...(follow && { follow }), ...(tail !== undefined && { tail }) }
    try {
      const { body } = await client.open(getVmLogs, { params: { namespace, vm: args.vm }, query, signal })
      const shown = host.stdout.isTerminal ? forEyes() : (chunk: Uint8Array) => chunk
      for await (const chunk of body) {
        host.stdout.write(shown(chunk))
        await host.stdout.flush()
      }
      return 0
    } catch (error) {
      if (follow && signal.aborted) return 130
      throw error
    }
  },
})

/** On a terminal, what a guest writes must not move the cursor or change titles; a pipe gets every byte. */
function forEyes(): (chunk: Uint8Array) => string {
  const decoder = new TextDecoder()
  return (chunk) =>
    decoder
      .decode(chunk, { stream: true })
      .replaceAll('\r', '')
      .split('\n')
      .map((line) => visible(line.replaceAll('\t', '    ')))
      .join('\n')
}
