// svc3 image generate
import { generateImage } from '../../../api/images/images.ts'
import { diskSizeRule, parseDiskSize } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { bootedBy, checkName, described } from './options.ts'

export const command = defineCommand({
  description: 'An empty disk for Intel-based VMs, to install a system on. It takes no space.',
  arguments: {
    name: { value: 'NAME', description: 'name of the image', required: true },
    size: { value: 'SIZE', description: 'such as 512M, 120G or 1T', required: true },
  },
  options: { ...bootedBy, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image generate empty 120G', does: 'An empty disk of 120 GiB' },
    { line: 'svc3 image generate empty 120G --firmware uefi', does: 'For a system that is booted by UEFI' },
    { line: 'svc3 image generate sonoma 120G --os macos', does: 'To install macOS on, from an ISO' },
  ],
  async run(context, { args: { name, size }, options: { description, firmware, os } }) {
    checkName(name, 'image')
    if (parseDiskSize(size) === undefined) throw new UsageError(`"${size}" is not ${diskSizeRule}`)
    const { client, namespace } = await context.connect()
    const boot = { ...(firmware && { firmware }), ...(os && { os }) }
    const body = { name, size, ...boot, ...(description !== undefined && { description }) }
    const image = await client.call(generateImage, { params: { namespace }, body, signal: context.signal })
    await context.done(`Image ${name} is an empty disk of ${image.size}.`, image)
    return 0
  },
})
