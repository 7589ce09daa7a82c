// svc3 namespace create
import { createNamespace } from '../../../api/access/namespaces.ts'
import { isNamespaceName, realNamespace } from '../../../rules/names.ts'
import { connected, defineCommand, millisecondsOf, printed, waiting } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const command = defineCommand({
  arguments: {
    name: { value: 'NAME', description: 'name, starting with svc-; lowercase letters, digits, dashes', required: true },
  },
  options: {
    'enable-custom-pods': { type: 'boolean', description: 'Reserve it for other workloads; VMs are refused' },
    ...waiting,
    ...connected,
    ...printed,
  },
  examples: [{ line: 'svc3 namespace create svc-ios', does: 'Create a namespace for a team' }],
  async run(context, { args: { name }, options }) {
    if (!isNamespaceName(realNamespace(name)))
      throw new UsageError(
        `Invalid namespace name "${name}"`,
        'Start with svc-, use lowercase letters, digits and dashes, end with a letter or digit; at most 63 characters',
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
