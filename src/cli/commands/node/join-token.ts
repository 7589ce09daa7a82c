// svc3 node join-token
import { createJoinToken } from '../../../api/nodes/nodes.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description:
    'Prints one string with which a host joins as a node of a namespace, and nothing else: the addresses of the servers,\n' +
    'the key they are known by, and a secret that is good once. On the host, "svc3 agent --join-token-stdin" reads it.',
  arguments: {},
  options: {
    duration: {
      type: 'string',
      value: 'DURATION',
      defaultText: 'an hour',
      description: 'How long hosts may use it, such as 30m or 7d',
    },
    reusable: { type: 'boolean', description: 'Several hosts may join by it until it ends' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node join-token -n svc-ios', does: 'For a host of a team, within the next hour' },
    { line: 'svc3 node join-token --reusable --duration 1d', does: 'For as many hosts as are installed today' },
    { line: 'svc3 node join-token --duration 7d -o json', does: 'For a week, with its end' },
  ],
  async run(context, { options: { duration, reusable } }) {
    if (duration !== undefined && !parseDuration(duration))
      throw new UsageError(`"${duration}" is not a duration`, 'write for example 30m or 7d')
    const { client, namespace } = await context.connect()
    const issued = await client.call(createJoinToken, {
      params: { namespace },
      body: { ...(duration !== undefined && { duration }), ...(reusable && { reusable }) },
      signal: context.signal,
    })
    if (context.format === 'json' || context.format === 'yaml') await context.done('', issued)
    // Older servers return the token alone.
    else context.host.stdout.write(`${issued.join ?? issued.token}\n`)
    return 0
  },
})
