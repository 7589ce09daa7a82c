// svc3 namespace create
import { createNamespace } from '../../../api/access/namespaces.ts'
import { isNamespaceName, realNamespace } from '../../../rules/names.ts'
import { connected, defineCommand, millisecondsOf, printed, waiting } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'begins with svc-; lowercase letters, digits, dashes', required: true },
  },
  options: {
    'enable-custom-pods': { type: 'boolean', description: 'Keep it for other workloads: VMs are refused there' },
    ...waiting,
    ...connected,
    ...printed,
  },
  examples: [{ line: 'svc3 namespace create svc-ios', does: 'A namespace for a team' }],
  async run(context, { args: { name }, options }) {
    if (!isNamespaceName(realNamespace(name)))
      throw new UsageError(
        `"${name}" is not a name for a namespace`,
        'begin with svc-, then lowercase letters, digits and dashes, at most 63 in all, the last one a letter or digit',
      )
    const { client } = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    const enableCustomPods = options['enable-custom-pods']
    const record = await client.call(createNamespace, {
      body: { name, ...(enableCustomPods && { enableCustomPods }) },
      signal: context.signal,
    })
    await context.done(`Namespace ${record.name} created.`, record)
    return 0
  },
})
