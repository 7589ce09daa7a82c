// svc3 serviceaccount token
import { createServiceAccountToken } from '../../../api/access/service-accounts.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  description: 'Prints the token and nothing else. The server does not store it and cannot show it again.',
  arguments: { name: { value: 'NAME', description: 'service account', names: 'service-accounts', required: true } },
  options: {
    duration: {
      type: 'string',
      value: 'DURATION',
      defaultText: '8760h0m0s, a year',
      description: 'Lifetime, for example 8760h0m0s or 30d',
    },
    'no-expiration': { type: 'boolean', description: 'Never expire; valid until the account is deleted' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 serviceaccount token jenkins -n svc-ios', does: 'Create a token for a year' },
    {
      line: 'svc3 sa token jenkins --duration 30d -o json',
      does: 'Create a token for 30 days and show when it expires',
    },
  ],
  async run(context, { args: { name }, options }) {
    const { duration, 'no-expiration': noExpiration } = options
    const example = 'For example 8760h0m0s or 30d'
    if (duration !== undefined && noExpiration)
      throw new UsageError('Use either --duration or --no-expiration', example)
    if (duration !== undefined && parseDuration(duration) === undefined)
      throw new UsageError(`Invalid duration "${duration}"`, example)
    const { client, namespace } = await context.connect()
    const issued = await client.call(createServiceAccountToken, {
      params: { namespace, serviceaccount: name },
      body: { ...(duration !== undefined && { duration }), ...(noExpiration && { noExpiration }) },
      signal: context.signal,
    })
    if (context.isData) await context.done('', issued)
    else context.host.stdout.write(`${issued.token}\n`)
    return 0
  },
})
