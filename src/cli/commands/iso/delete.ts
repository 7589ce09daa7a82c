// svc3 iso delete
import { deleteIso } from '../../../api/images/isos.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Refused while VMs use it. When one of several cannot be deleted, the others are all the same.',
  arguments: {
    names: { value: 'NAME', description: 'ISOs to delete', names: 'isos', required: true, repeatable: true },
  },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 iso delete ventura.iso', does: 'Its content goes when nothing else has it' }],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return deleteEach(context, {
      names,
      kind: 'iso',
      lookAgain: 'iso list',
      remove: (iso) => client.call(deleteIso, { params: { namespace, iso }, signal: context.signal }),
    })
  },
})
