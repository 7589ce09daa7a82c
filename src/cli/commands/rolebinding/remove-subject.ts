// svc3 rolebinding remove-subject
import { listSubjects, removeSubjects, type Subject, type SubjectsInput } from '../../../api/access/role-bindings.ts'
import { ApiError } from '../../../api/errors.ts'
import { defaultNamespace, realNamespace } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { role, subjectOptions, subjectsOf } from './subjects.ts'

export const command = defineCommand({
  description: 'Removes access. Exit code 5 if a subject has no access; the others are removed.',
  arguments: {},
  options: { ...subjectOptions, ...namespaced, ...printed },
  examples: [
    {
      line: 'svc3 rb remove-subject -u ana@example.com -s svc-ios:jenkins -n svc-tv',
      does: 'Remove a user and a CI system from a namespace',
    },
  ],
  async run(context, { options }) {
    const body = subjectsOf(options)
    const { signal } = context
    const { client, namespace } = await context.connect()
    const params = { namespace, role }
    const { items: members } = await client.call(listSubjects, { params, signal })
    const missing = missingFrom(members, body, namespace)
    if (missing.length < (body.users?.length ?? 0) + (body.serviceaccounts?.length ?? 0)) {
      const { items } = await client.call(removeSubjects, { params, body, signal })
      await context.done(`Subjects removed from role ${role} in namespace ${namespace}.`, items)
    }
    if (missing.length === 0) return 0
    throw new ApiError('NotFound', `${missing.join(' and ')} not found in role ${role} of ${namespace}`, {
      hint: `Run svc3 rb list-subjects -n ${namespace} to see who has access`,
    })
  },
})

/** In the default namespace every user has the role until removed, listed or not. */
function missingFrom(members: readonly Subject[], body: SubjectsInput, namespace: string): string[] {
  const isDefault = realNamespace(namespace) === defaultNamespace
  const isUser = (email: string): boolean =>
    members.some(({ kind, name }) => kind === 'User' && name === email.toLowerCase())
  const isAccount = (of: { readonly name: string; readonly namespace: string }): boolean =>
    // An account always has access to its own namespace: the service says so.
    realNamespace(of.namespace) === realNamespace(namespace) ||
    members.some(
      ({ kind, name, namespace: place = '' }) =>
        kind === 'ServiceAccount' && name === of.name && realNamespace(place) === realNamespace(of.namespace),
    )
  return [
    ...(body.users ?? []).filter((email) => !isDefault && !isUser(email)).map((email) => `User ${email}`),
    ...(body.serviceaccounts ?? [])
      .filter((account) => !isAccount(account))
      .map(({ name, namespace: place }) => `Service account ${place}:${name}`),
  ]
}
