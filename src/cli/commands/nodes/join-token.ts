// svc3 node join-token
import { createJoinToken } from '../../../api/nodes.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../usage.ts'

export const command = defineCommand({
  description:
    'Prints a token with which hosts join as nodes of a namespace, and nothing else. It is stored nowhere.\n' +
    'On such a host, "svc3 agent --join-token-stdin" reads it.',
  arguments: {},
  options: {
    duration: {
      type: 'string',
      value: 'DURATION',
      defaultText: 'an hour',
      description: 'How long hosts may use it, such as 30m or 7d',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node join-token -n svc-ios', does: 'For the hosts of a team, within the next hour' },
    { line: 'svc3 node join-token --duration 7d -o json', does: 'For a week, with its end' },
  ],
  async run(context, { options: { duration } }) {
    if (duration !== undefined && !parseDuration(duration))
      throw new UsageError(`"${duration}" is not a duration`, 'write for example 30m or 7d')
    const { client, namespace } = await context.connect()
    const issued = await client.call(createJoinToken, {
      params: { namespace },
      body: { ...(duration !== undefined && { duration }) },
      signal: context.signal,
    })
    if (context.format === 'json' || context.format === 'yaml') await context.done('', issued)
    else context.host.stdout.write(`${issued.token}\n`)
    return 0
  },
})
