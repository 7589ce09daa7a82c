// svc3 namespace delete
import { deleteNamespace } from '../../../api/access/namespaces.ts'
import { connected, defineCommand, millisecondsOf, printed, waiting } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Its credentials, service accounts and role bindings go with it. Refused while VMs or nodes are in it.',
  arguments: {
    names: {
      value: 'NAME',
      description: 'namespaces to delete',
      names: 'namespaces',
      required: true,
      repeatable: true,
    },
  },
  options: { ...waiting, ...connected, ...printed },
  examples: [{ line: 'svc3 namespace delete svc-ios', does: 'Delete a namespace that is not needed any more' }],
  async run(context, { args: { names }, options }) {
    const { client } = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    return deleteEach(context, {
      names,
      kind: 'namespace',
      lookAgain: 'namespace list',
      remove: (namespace) => client.call(deleteNamespace, { params: { namespace }, signal: context.signal }),
      sentence: (name) => `Namespace ${name} deleted.`,
    })
  },
})
