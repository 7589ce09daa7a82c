// Who may work in which namespace as a developer, for administrators.
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
import { texts } from '../../texts.ts'
import { ActionDialog, removal } from '../../ui/action-dialog.tsx'
import { TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { nameColumn } from '../links.tsx'
import { parseAccounts, parseNames } from './subjects.ts'
import { roleTexts as words } from './texts.ts'

interface Developer {
  readonly name: string
  /** In which the subject is a developer; a service account may be of another. */
  readonly namespace: string
  readonly subject: Subject
}

const columns: readonly Column<Developer>[] = [
  nameColumn(),
  { title: words.kind, by: ({ subject }) => kindOf(subject) },
  { title: texts.common.namespace, by: ({ namespace }) => namespace, look: 'wide' },
  actionsColumn((each) => <SubjectMenu {...each} />),
]

const kindOf = ({ kind, namespace = '' }: Subject): string => (kind === 'User' ? words.user : words.account(namespace))

export const accessCreation = (namespace: string): MenuItem => ({
  label: words.add.label,
  dialog: (onClose) => <Add namespace={namespace} onClose={onClose} />,
})

export function RoleBindings() {
  const { shown, main } = useNamespaces()
  const list = useLive(listRoleBindings, shown)
  const items = useMemo(() => list.items.flatMap(developersOf), [list.items])
  return (
    <TablePage
      words={words}
      operation={listSubjects}
      input={{ params: { namespace: main, role: devRole } }}
      create={accessCreation(main)}
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

function SubjectMenu({ name, namespace, subject }: Developer) {
  const remove = removal({
    name,
    words: { ...words.remove, text: words.revoked(namespace) },
    operation: removeSubjects,
    input: { params: { namespace, role: devRole }, body: inputFor(subject) },
  })
  return <ActionsMenu name={name} items={[remove]} size="small" />
}

function Add({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const { values, field } = useForm({ users: '', serviceaccounts: '' })
  const users = parseNames(values.users)
  const serviceaccounts = parseAccounts(values.serviceaccounts, namespace)
  return (
    <ActionDialog
      words={words.add}
      name={namespace}
      operation={addSubjects}
      input={{ params: { namespace, role: devRole }, body: { users, serviceaccounts } }}
      reason={users.length + serviceaccounts.length === 0 ? texts.common.required(words.subjects) : undefined}
      onClose={onClose}
    >
      <TextField label={words.users} hint={words.usersHint} {...field('users')} autoFocus />
      <TextField label={words.accounts} hint={words.accountsHint} {...field('serviceaccounts')} />
    </ActionDialog>
  )
}
