// svc3 vm-config create
import { createVmConfig } from '../../../api/vms/vm-configs.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { shapeOf, shapeOptions } from '../vm/parts/shape.ts'

export const command = defineCommand({
  description: 'Saves options under a name, for svc3 vm deploy --config.',
  arguments: {
    name: { value: 'NAME', description: 'up to 50 lowercase letters, digits and dashes', required: true },
  },
  options: {
    image: {
      type: 'string',
      short: 'i',
      value: 'IMAGE',
      required: true,
      description: 'Image name, or OCI reference (arm64)',
    },
    ...shapeOptions,
    ...namespaced,
    ...printed,
  },
  examples: [
    {
      line: 'svc3 vm-config create ios-build -i sonoma -c 4 -m 8 --tag ios',
      does: 'Create a configuration for builds',
    },
  ],
  async run(context, { args: { name }, options }) {
    if (!isVmConfigName(name))
      throw new UsageError(
        `Invalid name "${name}"`,
        'Use up to 50 lowercase letters, digits and dashes, with a letter or digit at both ends',
      )
    if (options['tag-required'] && options.tag === undefined)
      throw new UsageError('--tag-required requires --tag', 'Add --tag TAG')
    const body = { name, image: options.image, ...shapeOf(options) }
    const { client, namespace } = await context.connect()
    const record = await client.call(createVmConfig, { params: { namespace }, body, signal: context.signal })
    await context.done(`VM configuration ${record.name} created in ${namespace}.`, record)
    return 0
  },
})
