// svc3 serviceaccount delete
import { deleteServiceAccount } from '../../../api/service-accounts.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description: 'Every token of the account is refused from then on, also when an account of that name is made again.',
  arguments: { name: { value: 'NAME', description: 'the account', names: 'service-accounts', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 serviceaccount delete jenkins -n svc-ios', does: 'End an account and all its tokens' }],
  async run(context, { args: { name } }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, serviceaccount: name }
    const status = await client.call(deleteServiceAccount, { params, signal: context.signal })
    await context.done(`Service account ${name} deleted from namespace ${namespace}.`, status)
    return 0
  },
})
