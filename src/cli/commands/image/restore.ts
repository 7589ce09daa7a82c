// svc3 image restore
import { restoreImage } from '../../../api/images/images.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description:
    'What an earlier version was becomes the next version; svc3 image show lists them. New VMs are deployed from it, and existing VMs stay ' +
    'as they are. The content of the 5 versions before the current one is kept. A protected image only for administrators.',
  arguments: { name: { value: 'NAME', description: 'image to restore', names: 'images', required: true } },
  options: {
    version: {
      type: 'integer',
      value: 'VERSION',
      min: 1,
      max: 1_000_000_000,
      required: true,
      description: 'Version to restore',
    },
    ...namespaced,
    ...printed,
  },
  examples: [{ line: 'svc3 image restore sonoma --version 2', does: 'Undo the commits since version 2' }],
  async run(context, { args: { name: image }, options: { version } }) {
    const { client, namespace } = await context.connect()
    const request = { params: { namespace, image }, body: { version }, signal: context.signal }
    const restored = await client.call(restoreImage, request)
    await context.done(`Image ${image} is at version ${restored.version}, which is version ${version} again.`, restored)
    return 0
  },
})
