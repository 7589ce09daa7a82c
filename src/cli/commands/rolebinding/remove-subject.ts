// svc3 rolebinding remove-subject
import { removeSubjects } from '../../../api/access/role-bindings.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { role, subjectOptions, subjectsOf } from './subjects.ts'

export const command = defineCommand({
  arguments: {},
  options: { ...subjectOptions, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 rb remove-subject -u ana@example.com -s svc-ios:jenkins -n svc-tv', does: 'Take it away again' },
  ],
  async run(context, { options }) {
    const body = subjectsOf(options)
    const { client, namespace } = await context.connect()
    const { items } = await client.call(removeSubjects, { params: { namespace, role }, body, signal: context.signal })
    await context.done(`Subjects removed from role ${role} in namespace ${namespace}.`, items)
    return 0
  },
})
