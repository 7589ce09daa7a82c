// svc3 serviceaccount delete
import { deleteServiceAccount } from '../../../api/access/service-accounts.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Every token of the account is refused from then on, also when an account of that name is made again.',
  arguments: {
    names: { value: 'NAME', description: 'the accounts', names: 'service-accounts', required: true, repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 serviceaccount delete jenkins -n svc-ios', does: 'End an account and all its tokens' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'service account',
      lookAgain: `serviceaccount list -n ${namespace}`,
      remove: (serviceaccount) =>
        client.call(deleteServiceAccount, { params: { namespace, serviceaccount }, signal: context.signal }),
      sentence: (name) => `Service account ${name} deleted from namespace ${namespace}.`,
    })
  },
})
