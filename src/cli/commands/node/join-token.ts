// svc3 node join-token
import { createJoinToken } from '../../../api/nodes/nodes.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description:
    'Prints a string with which a host joins a namespace as a node, and nothing else: the addresses of the servers,\n' +
    'the fingerprint of their key, and a secret that works once. On the host, svc3 agent --join-token-stdin reads it.',
  arguments: {},
  options: {
    duration: {
      type: 'string',
      value: 'DURATION',
      defaultText: '1 hour',
      description: 'Lifetime, for example 30m or 7d',
    },
    reusable: { type: 'boolean', description: 'Let several hosts join with it until it expires' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node join-token -n svc-ios', does: 'Join a host to the namespace of a team within an hour' },
    { line: 'svc3 node join-token --reusable --duration 1d', does: 'Join any number of hosts today' },
    { line: 'svc3 node join-token --duration 7d -o json', does: 'Valid for a week; show when it expires' },
  ],
  async run(context, { options: { duration, reusable } }) {
    if (duration !== undefined && !parseDuration(duration))
      throw new UsageError(`Invalid duration "${duration}"`, 'For example 30m or 7d')
    const { client, namespace } = await context.connect()
    const issued = await client.call(createJoinToken, {
      params: { namespace },
      body: { ...(duration !== undefined && { duration }), ...(reusable && { reusable }) },
      signal: context.signal,
    })
    if (context.isData) await context.done('', issued)
    // Older servers return the token alone.
    else context.host.stdout.write(`${issued.join ?? issued.token}\n`)
    if (context.host.stdout.isTerminal && !context.isData) {
      const uses = reusable ? 'Any number of hosts can join with it' : 'One host can join with it'
      context.note(`${uses}, until ${issued.expiresAt}`)
      context.note('On the host: svc3 agent --join-token-stdin, or sudo svc3 agent install --join-token-stdin')
    }
    return 0
  },
})
