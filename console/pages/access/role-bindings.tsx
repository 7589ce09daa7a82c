// Who has the developer role in which namespace, for administrators.
import { useMemo } from 'react'
import {
  addSubjects,
  listRoleBindings,
  listSubjects,
  type RoleBinding,
  removeSubjects,
  type Subject,
  type SubjectsInput,
} from '../../../src/api/access/role-bindings.ts'
import { devRole } from '../../../src/rules/names.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { type ActionWords, formItem, removeItem } from '../../ui/action-dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'
import { parseAccounts, parseNames } from './subjects.ts'

const addWords: ActionWords = {
  label: 'Grant access',
  title: (namespace) => `Grant access to ${namespace}`,
  text: 'Grants the developer role in this namespace.',
  done: (namespace) => `Access to ${namespace} granted`,
}

const removeWords: ActionWords = {
  label: 'Revoke access',
  title: (name) => `Revoke access of ${name}?`,
  done: (name) => `Access of ${name} revoked`,
}

interface Developer {
  readonly name: string
  /** The namespace of the role. A service account may belong to another one. */
  readonly namespace: string
  readonly subject: Subject
}

const columns: readonly Column<Developer>[] = [
  nameColumn(),
  { title: 'Kind', by: ({ subject }) => kindOf(subject) },
  { title: 'Namespace', by: ({ namespace }) => namespace, look: 'wide' },
  menuColumn(
    ({ name }) => name,
    ({ name, namespace, subject }) => [
      removeItem({
        name,
        words: { ...removeWords, text: `They can no longer view or change anything in ${namespace}.` },
        operation: removeSubjects,
        input: { params: { namespace, role: devRole }, body: inputFor(subject) },
      }),
    ],
  ),
]

const kindOf = ({ kind, namespace = '' }: Subject): string =>
  kind === 'User' ? 'User' : `Service account of ${namespace}`

export const accessCreation = (namespace: string): MenuItem =>
  formItem({
    words: addWords,
    name: namespace,
    operation: addSubjects,
    initial: { users: '', serviceaccounts: '' },
    input: ({ users, serviceaccounts }) => ({
      params: { namespace, role: devRole },
      body: { users: parseNames(users), serviceaccounts: parseAccounts(serviceaccounts, namespace) },
    }),
    faultOf: ({ users, serviceaccounts }) =>
      parseNames(users + serviceaccounts).length === 0 ? 'A user or service account is required' : undefined,
    fields: ({ field }) => (
      <>
        <TextField label="Users" hint="Email addresses, separated by commas" {...field('users')} autoFocus />
        <TextField label="Service accounts" hint="NAMESPACE:NAME, separated by commas" {...field('serviceaccounts')} />
      </>
    ),
  })

export function RoleBindings() {
  const { shown } = useNamespaces()
  const list = useLive(listRoleBindings, shown)
  const items = useMemo(() => list.items.flatMap(developersOf), [list.items])
  return (
    <TablePage
      title="Access"
      text="Users and service accounts with the developer role. In svc-default, every user has it unless removed."
      emptyTitle="No developers added yet"
      emptyText="Grant users or service accounts the developer role in a namespace."
      operation={listSubjects}
      input={{ params: { role: devRole } }}
      create={accessCreation}
      list={{ ...list, items }}
      columns={columns}
      keyOf={({ namespace, subject }) => `${namespace} ${kindOf(subject)} ${subject.name}`}
    />
  )
}

const developersOf = ({ name, namespace, subjects }: RoleBinding): readonly Developer[] =>
  name === devRole ? subjects.map((subject) => ({ name: subject.name, namespace, subject })) : []

const inputFor = ({ kind, name, namespace = '' }: Subject): SubjectsInput =>
  kind === 'User' ? { users: [name] } : { serviceaccounts: [{ name, namespace }] }
