// Handlers of role bindings. There is one record per namespace and role. Adding and removing subjects is idempotent.
import type * as api from '../../../api/access/role-bindings.ts'
import type { Subject, SubjectsInput } from '../../../api/access/role-bindings.ts'
import { type ApiError, type Cause, invalid, invalidField, notFound } from '../../../api/errors.ts'
import { defaultNamespace, devRole, isServiceAccountName, isUserName, realNamespace } from '../../../rules/names.ts'
import type { Collections, RoleBindingRecord } from '../../../store/records/collections.ts'
import type { Settings } from '../../config/settings.ts'
import { writeInside } from '../../gate/namespace.ts'
import { Answer } from '../../http/answer.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'rolebindings'
const empty: RoleBindingRecord = { users: [], serviceAccounts: [], excludedUsers: [] }
type ServiceAccounts = RoleBindingRecord['serviceAccounts']

interface RoleBindingServices {
  readonly collections: Collections
  readonly settings: Pick<Settings, 'compat'>
}

export function roleBindings(services: RoleBindingServices): HandlersOf<typeof api> {
  const { collections, settings } = services
  const bindings = collections.roleBindings
  const aliases = settings.compat.namespaceAliases

  const checkRole = (role: string): string => {
    const real = realNamespace(role, aliases)
    if (real === devRole) return real
    throw notFound(kind, role, { hint: `Use ${devRole}, the only role` })
  }

  /** Applies `decide` to the record, again if the record changed in the meantime. Skips writes that change nothing. */
  const change = async (
    namespace: string,
    role: string,
    decide: (now: RoleBindingRecord) => RoleBindingRecord,
  ): Promise<Answer<{ items: Subject[] }>> => {
    let isSame = false
    const next = (before = empty): RoleBindingRecord | undefined => {
      const after = decide(before)
      isSame = JSON.stringify(after) === JSON.stringify(before)
      return isSame ? undefined : after
    }
    const entry = await writeInside(services, namespace, (space) =>
      bindings.change(bindings.key(namespace, role), next, [space]),
    )
    return new Answer(200, subjectsView(entry?.value ?? empty), isSame)
  }

  /** Parses the subjects of a request. `mustExist`: refuses service accounts that do not exist. */
  const subjectsOf = (input: SubjectsInput, mustExist: boolean): { users: string[]; accounts: ServiceAccounts } => {
    const causes: Cause[] = []
    const fault = (field: string, message: string, reason = 'FieldValueInvalid'): void =>
      void causes.push({ field, reason, message })
    const users = (input.users ?? []).map((name) => name.toLowerCase())
    for (const [index, name] of users.entries()) {
      if (!isUserName(name)) fault(`users.${index}`, `"${name}" is not an email address`)
    }
    const accounts = (input.serviceaccounts ?? []).map((account, index) => {
      const namespace = realNamespace(account.namespace, aliases)
      const uid = collections.serviceAccounts.get(namespace, account.name)?.value.uid ?? ''
      const field = `serviceaccounts.${index}`
      if (!isServiceAccountName(account.name)) fault(field, `Invalid service account name "${account.name}"`)
      else if (mustExist && uid === '')
        fault(field, `Service account ${account.name} not found in ${namespace}`, 'FieldValueNotFound')
      return { name: account.name, namespace, uid }
    })
    if (users.length + accounts.length === 0) fault('users', 'Specify users or serviceaccounts')
    if (causes.length > 0) throw invalid(kind, causes, 'Correct the subjects in details.causes')
    return { users, accounts }
  }

  /** Omits deleted accounts. An account that was created again has another uid. */
  const subjectsView = ({ users, serviceAccounts }: RoleBindingRecord): { items: Subject[] } => ({
    items: [
      ...users.map((name) => ({ kind: 'User' as const, name })),
      ...serviceAccounts
        .filter(({ name, namespace, uid }) => collections.serviceAccounts.get(namespace, name)?.value.uid === uid)
        .map(({ name, namespace }) => ({ kind: 'ServiceAccount' as const, name, namespace })),
    ],
  })

  return {
    listRoleBindings: ({ params: { namespace } }) => ({
      ...listing(bindings, namespace, ({ key, value, rev }) => ({
        name: devRole,
        namespace: bindings.scopeOf(key),
        subjects: subjectsView(value).items,
        resourceVersion: rev,
      })),
      isDerived: true,
      // Deleting or recreating an account changes the view but not the record.
      extraChanges: (notify) =>
        collections.serviceAccounts.view.subscribe(() => notify([bindings.key(namespace, devRole)])),
    }),

    listSubjects({ params: { namespace, role } }) {
      const { items } = subjectsView(bindings.get(namespace, checkRole(role))?.value ?? empty)
      const bound = new Set(items.map((subject) => `${subject.namespace}/${subject.name}`))
      const own = collections.serviceAccounts.list(namespace).map(({ value: { name } }) => name)
      const account = { kind: 'ServiceAccount', namespace, implicit: true } as const
      const isOther = (name: string): boolean => !bound.has(`${namespace}/${name}`)
      return { items: [...items, ...own.filter(isOther).map((name) => ({ ...account, name }))] }
    },

    async addSubjects({ params, body }) {
      const role = checkRole(params.role)
      const { users, accounts } = subjectsOf(body, true)
      return change(params.namespace, role, (now) => ({
        ...now,
        users: [...new Set([...now.users, ...users])].sort(),
        serviceAccounts: [...without(now.serviceAccounts, accounts), ...accounts].sort(byPath),
        excludedUsers: now.excludedUsers.filter((name) => !users.includes(name)),
      }))
    },

    async removeSubjects({ params, body }) {
      const role = checkRole(params.role)
      const { users, accounts } = subjectsOf(body, false)
      const own = accounts.find(({ namespace, uid }) => namespace === params.namespace && uid !== '')
      if (own) throw ownNamespace(own.name, params.namespace)
      return change(params.namespace, role, (now) => ({
        ...now,
        users: now.users.filter((name) => !users.includes(name)),
        serviceAccounts: without(now.serviceAccounts, accounts),
        excludedUsers:
          params.namespace === defaultNamespace ? [...new Set([...now.excludedUsers, ...users])].sort() : [],
      }))
    },
  }
}

const pathOf = ({ namespace, name }: { namespace: string; name: string }): string => `${namespace}/${name}`
const byPath = (a: ServiceAccounts[number], b: ServiceAccounts[number]): number => (pathOf(a) < pathOf(b) ? -1 : 1)
const without = (from: ServiceAccounts, those: ServiceAccounts): ServiceAccounts => {
  const paths = new Set(those.map(pathOf))
  return from.filter((each) => !paths.has(pathOf(each)))
}

const ownNamespace = (name: string, namespace: string): ApiError => {
  const message = `Service account ${name} always has this role in its own namespace ${namespace}`
  return invalid(kind, [invalidField('serviceaccounts', message)], 'Delete the service account instead')
}
