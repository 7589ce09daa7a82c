// svc3 vm-config create
import { createVmConfig } from '../../../api/vms/vm-configs.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { shapeOf, shapeOptions } from '../vm/parts/shape.ts'

export const command = defineCommand({
  description: 'A named set of values for "vm deploy --config".',
  arguments: {
    name: { value: 'NAME', description: 'at most 50 lowercase letters, digits and dashes', required: true },
  },
  options: {
    image: {
      type: 'string',
      short: 'i',
      value: 'IMAGE',
      required: true,
      description: 'An image, or for arm64 an OCI reference',
    },
    ...shapeOptions,
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm-config create ios-build -i sonoma -c 4 -m 8 --tag ios', does: 'For the builds of a team' },
  ],
  async run(context, { args: { name }, options }) {
    if (!isVmConfigName(name))
      throw new UsageError(
        `"${name}" is not a name for a VM configuration`,
        'at most 50 lowercase letters, digits and dashes; a letter or digit at both ends',
      )
    if (options['tag-required'] && options.tag === undefined)
      throw new UsageError('--tag-required needs a tag', 'add --tag TAG')
    const body = { name, image: options.image, ...shapeOf(options) }
    const { client, namespace } = await context.connect()
    const record = await client.call(createVmConfig, { params: { namespace }, body, signal: context.signal })
    await context.done(`VM configuration ${record.name} created in namespace ${namespace}.`, record)
    return 0
  },
})
