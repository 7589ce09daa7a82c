// svc3 rolebinding
import {
  addSubjects,
  listSubjects,
  removeSubjects,
  type Subject,
  type SubjectsInput,
} from '../../api/access/role-bindings.ts'
import { ApiError } from '../../api/errors.ts'
import { defaultNamespace, realNamespace } from '../../rules/names.ts'
import { defineCommand, namespaced, type Option, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'

const role = 'svc-dev'

const subjectOptions = {
  user: { type: 'string', short: 'u', value: 'EMAIL[,…]', description: 'Users, by e-mail address' },
  serviceaccount: { type: 'string', short: 's', value: 'NS:NAME[,…]', description: 'Service accounts' },
} as const satisfies Record<string, Option>

const columns: readonly OutputColumn<Subject>[] = [
  { header: 'KIND', cell: (item) => item.kind },
  { header: 'NAME', cell: (item) => item.name },
  { header: 'NAMESPACE', cell: (item) => item.namespace },
  { header: 'IMPLICIT', wide: true, cell: (item) => (item.implicit ? 'yes' : 'no') },
]

const parts = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

function subjectsOf(options: { user: string | undefined; serviceaccount: string | undefined }): SubjectsInput {
  const users = parts(options.user)
  const serviceaccounts = parts(options.serviceaccount).map((text) => {
    const [namespace, name, ...more] = text.split(':')
    if (namespace && name && more.length === 0) return { namespace, name }
    throw new UsageError(
      `Invalid service account "${text}": use NAMESPACE:NAME`,
      'For example --serviceaccount svc-ios:jenkins',
    )
  })
  if (users.length + serviceaccounts.length > 0) return { users, serviceaccounts }
  throw new UsageError('No subjects specified', 'Use --user EMAIL or --serviceaccount NAMESPACE:NAME')
}

const listSubjects_ = defineCommand({
  description:
    'In the default namespace every user is a developer, listed or not, until an administrator removes them.',
  arguments: {},
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 rolebinding list-subjects -n svc-ios', does: 'List who has access to a namespace' }],
  async run(context) {
    const { client, namespace } = await context.connect()
    const { items } = await client.call(listSubjects, { params: { namespace, role }, signal: context.signal })
    await context.print(items, columns, `No subjects in namespace ${namespace}.`)
  },
})

const addSubject = defineCommand({
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
  },
})

const removeSubject = defineCommand({
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

/** In the default namespace, users have the role until they are removed, even if they are not listed. */
function missingFrom(members: readonly Subject[], body: SubjectsInput, namespace: string): string[] {
  const isDefault = realNamespace(namespace) === defaultNamespace
  const isUser = (email: string): boolean =>
    members.some(({ kind, name }) => kind === 'User' && name === email.toLowerCase())
  const isAccount = (of: { readonly name: string; readonly namespace: string }): boolean =>
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

export const commands = {
  'list-subjects': listSubjects_,
  'add-subject': addSubject,
  'remove-subject': removeSubject,
}
