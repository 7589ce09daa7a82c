// svc3 iso delete
import { deleteIso } from '../../../api/images/isos.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description:
    'For the owner of the ISO, people of the namespace it was made in, and administrators. Refused while VMs use it. If one of ' +
    'several cannot be deleted, the others still are.',
  arguments: {
    names: { value: 'NAME', description: 'ISOs to delete', names: 'isos', required: true, repeatable: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 iso delete ventura.iso', does: 'Delete an image' }],
  async run(context, { args: { names }, options: { yes } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'iso',
      nouns: ['ISO', 'ISOs'],
      yes,
      question: (isos) => `Delete ${isos} from the cluster?`,
      listCommand: 'iso list',
      remove: (iso) => client.call(deleteIso, { params: { namespace, iso }, signal: context.signal }),
    })
  },
})
