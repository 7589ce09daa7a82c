// svc3 serviceaccount token
import { createServiceAccountToken } from '../../../api/access/service-accounts.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description: 'Prints the token and nothing else. It is shown once and stored nowhere.',
  arguments: { name: { value: 'NAME', description: 'the account', names: 'service-accounts', required: true } },
  options: {
    duration: {
      type: 'string',
      value: 'DURATION',
      defaultText: '8760h0m0s, a year',
      description: 'How long it is valid, such as 8760h0m0s or 30d',
    },
    'no-expiration': { type: 'boolean', description: 'Valid until the account is deleted' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 serviceaccount token jenkins -n svc-ios', does: 'A token for a year' },
    { line: 'svc3 sa token jenkins --duration 30d -o json', does: 'For thirty days, with its end' },
  ],
  async run(context, { args: { name }, options }) {
    const { duration, 'no-expiration': noExpiration } = options
    const example = 'write for example 8760h0m0s or 30d'
    if (duration !== undefined && noExpiration)
      throw new UsageError('--duration and --no-expiration exclude each other', example)
    if (duration !== undefined && parseDuration(duration) === undefined)
      throw new UsageError(`"${duration}" is not a duration`, example)
    const { client, namespace } = await context.connect()
    const issued = await client.call(createServiceAccountToken, {
      params: { namespace, serviceaccount: name },
      body: { ...(duration !== undefined && { duration }), ...(noExpiration && { noExpiration }) },
      signal: context.signal,
    })
    if (context.format === 'json' || context.format === 'yaml') await context.done('', issued)
    else context.host.stdout.write(`${issued.token}\n`)
    return 0
  },
})
