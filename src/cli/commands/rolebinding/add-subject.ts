// svc3 rolebinding add-subject
import { addSubjects } from '../../../api/access/role-bindings.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { role, subjectOptions, subjectsOf } from './subjects.ts'

export const command = defineCommand({
  arguments: {},
  options: { ...subjectOptions, ...namespaced, ...printed },
  examples: [
    {
      line: 'svc3 rb add-subject -u ana@example.com -s svc-ios:jenkins -n svc-tv',
      does: 'Give a user and a CI system access to a namespace',
    },
  ],
  async run(context, { options }) {
    const body = subjectsOf(options)
    const { client, namespace } = await context.connect()
    const { items } = await client.call(addSubjects, { params: { namespace, role }, body, signal: context.signal })
    await context.done(`Subjects added to role ${role} in namespace ${namespace}.`, items)
    return 0
  },
})
