// svc3 image delete
import { deleteImage } from '../../../api/images/images.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description:
    'For the owner of the image, people of the namespace it was made in, and administrators. Refused while VMs use it. If one of ' +
    'several cannot be deleted, the others still are.',
  arguments: {
    names: { value: 'NAME', description: 'images to delete', names: 'images', required: true, repeatable: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 image delete sonoma', does: 'Delete an image' }],
  async run(context, { args: { names }, options: { yes } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'image',
      nouns: ['image', 'images'],
      yes,
      question: (images) => `Delete ${images} from the cluster?`,
      listCommand: 'image list',
      remove: (image) => client.call(deleteImage, { params: { namespace, image }, signal: context.signal }),
    })
  },
})
