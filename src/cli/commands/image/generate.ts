// svc3 image generate
import { generateImage } from '../../../api/images/images.ts'
import { diskSizeRule, parseDiskSize } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { bootedBy, checkName, described } from './options.ts'

export const command = defineCommand({
  description: 'Creates an empty disk for Intel-based VMs, to install a system on. Takes no disk space.',
  arguments: {
    name: { value: 'NAME', description: 'name of the image', required: true },
    size: { value: 'SIZE', description: 'size, for example 512M, 120G or 1T', required: true },
  },
  options: { ...bootedBy, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image generate empty 120G', does: 'Create an empty disk of 120 GiB' },
    { line: 'svc3 image generate empty 120G --firmware uefi', does: 'Boot it with UEFI' },
    { line: 'svc3 image generate sonoma 120G --os macos', does: 'Create a disk to install macOS on from an ISO' },
  ],
  async run(context, { args: { name, size }, options: { description, firmware, os } }) {
    checkName(name, 'image')
    if (parseDiskSize(size) === undefined) throw new UsageError(`Invalid size "${size}": use ${diskSizeRule}`)
    const { client, namespace } = await context.connect()
    const boot = { ...(firmware && { firmware }), ...(os && { os }) }
    const body = { name, size, ...boot, ...(description !== undefined && { description }) }
    const image = await client.call(generateImage, { params: { namespace }, body, signal: context.signal })
    await context.done(`Image ${name} created: an empty disk of ${image.size}.`, image)
    return 0
  },
})
