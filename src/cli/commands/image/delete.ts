// svc3 image delete
import { deleteImage } from '../../../api/images/images.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Refused while VMs use it. When one of several cannot be deleted, the others are all the same.',
  arguments: {
    names: { value: 'NAME', description: 'images to delete', names: 'images', required: true, repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 image delete sonoma', does: 'Its content goes when nothing else has it' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'image',
      lookAgain: 'image list',
      remove: (image) => client.call(deleteImage, { params: { namespace, image }, signal: context.signal }),
    })
  },
})
