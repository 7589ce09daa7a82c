// What the rolebinding commands share: parsing and printing subjects.
import type { Subject, SubjectsInput } from '../../../api/access/role-bindings.ts'
import type { Option } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import type { Column } from '../../output/output.ts'

export const role = 'svc-dev'

export const subjectOptions = {
  user: { type: 'string', short: 'u', value: 'EMAIL[,…]', description: 'Users, by e-mail address' },
  serviceaccount: { type: 'string', short: 's', value: 'NS:NAME[,…]', description: 'Service accounts' },
} as const satisfies Record<string, Option>

export const columns: readonly Column<Subject>[] = [
  { header: 'KIND', cell: (item) => item.kind },
  { header: 'NAME', cell: (item) => item.name },
  { header: 'NAMESPACE', cell: (item) => item.namespace },
]

const parts = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')

export function subjectsOf(options: { user: string | undefined; serviceaccount: string | undefined }): SubjectsInput {
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
