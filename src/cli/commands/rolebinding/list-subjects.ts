// svc3 rolebinding list-subjects
import { listSubjects } from '../../../api/access/role-bindings.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { columns, role } from './subjects.ts'

export const command = defineCommand({
  description:
    'In the default namespace every user is a developer, listed or not, until an administrator removes them.',
  arguments: {},
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 rolebinding list-subjects -n svc-ios', does: 'List who has access to a namespace' }],
  async run(context) {
    const { client, namespace } = await context.connect()
    const { items } = await client.call(listSubjects, { params: { namespace, role }, signal: context.signal })
    await context.print(items, columns, `No subjects in namespace ${namespace}.`)
    return 0
  },
})
