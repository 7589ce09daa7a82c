// svc3 namespace delete
import { deleteNamespace } from '../../../api/namespaces.ts'
import { connected, defineCommand, printed, waiting } from '../../command.ts'

export const command = defineCommand({
  description: 'Its credentials, service accounts and role bindings go with it. Refused while VMs or nodes are in it.',
  arguments: { name: { value: 'NAME', description: 'the namespace', names: 'namespaces', required: true } },
  options: { ...waiting, ...connected, ...printed },
  examples: [{ line: 'svc3 namespace delete svc-ios', does: 'Delete a namespace that is not needed any more' }],
  async run(context, { args: { name }, options }) {
    const { client } = await context.connect({ timeoutMs: options.timeout * 60_000 })
    const status = await client.call(deleteNamespace, { params: { namespace: name }, signal: context.signal })
    await context.done(`Namespace ${name} deleted.`, status)
    return 0
  },
})
