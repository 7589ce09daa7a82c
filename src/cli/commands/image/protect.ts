// svc3 image protect
import { protectImage } from '../../../api/images/images.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'

export const command = defineCommand({
  description:
    'Only administrators delete a protected image or commit to it; everybody deploys and copies it. Built-in images are protected. ' +
    'For administrators.',
  arguments: { name: { value: 'NAME', description: 'image to protect', names: 'images', required: true } },
  options: { off: { type: 'boolean', description: 'Remove the protection' }, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image protect sonoma', does: 'Keep an image from being changed or deleted' },
    { line: 'svc3 image protect sonoma --off', does: 'Let its owner delete it again' },
  ],
  async run(context, { args: { name: image }, options: { off } }) {
    const { client, namespace } = await context.connect()
    const request = { params: { namespace, image }, body: { protected: !off }, signal: context.signal }
    const changed = await client.call(protectImage, request)
    await context.done(`Image ${image} is ${off ? 'no longer ' : ''}protected.`, changed)
    return 0
  },
})
