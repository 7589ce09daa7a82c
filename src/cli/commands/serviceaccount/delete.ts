// svc3 serviceaccount delete
import { deleteServiceAccount } from '../../../api/access/service-accounts.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'All tokens of the account stop working, even if you create an account with the same name again.',
  arguments: {
    names: {
      value: 'NAME',
      description: 'service accounts to delete',
      names: 'service-accounts',
      required: true,
      repeatable: true,
    },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 serviceaccount delete jenkins -n svc-ios', does: 'Delete an account and its tokens' }],
  async run(context, { args: { names }, options: { yes } }) {
    const { client, namespace, sameTargetFlags } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'service account',
      nouns: ['service account', 'service accounts'],
      yes,
      question: (accounts, { length }) =>
        `Delete ${accounts} in ${namespace}? ${length === 1 ? 'Its' : 'Their'} tokens stop working.`,
      listCommand: `serviceaccount list${sameTargetFlags}`,
      remove: (serviceaccount) =>
        client.call(deleteServiceAccount, { params: { namespace, serviceaccount }, signal: context.signal }),
      sentence: (name) => `Service account ${name} deleted from namespace ${namespace}.`,
    })
  },
})
