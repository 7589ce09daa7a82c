// svc3 serviceaccount create
import { createServiceAccount } from '../../../api/access/service-accounts.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'name; lowercase letters, digits, dashes, periods', required: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 serviceaccount create jenkins -n svc-ios', does: 'Create an account for a CI system' }],
  async run(context, { args: { name } }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, serviceaccount: name }
    const record = await client.call(createServiceAccount, { params, signal: context.signal })
    await context.done(`Service account ${record.name} created in namespace ${record.namespace}.`, record)
    return 0
  },
})
