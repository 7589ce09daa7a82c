// Who may work in a namespace as a developer, for administrators.
import { useMemo } from 'react'
import {
  addSubjects,
  listRoleBindings,
  listSubjects,
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

const columnsFor = (namespace: string): readonly Column<Subject>[] => [
  nameColumn(),
  { title: words.kind, by: (each) => each.kind, cell: (each) => (each.kind === 'User' ? words.user : words.account) },
  {
    title: texts.common.namespace,
    by: (each) => each.namespace ?? '',
    look: 'wide',
    cell: (each) => each.namespace ?? '–',
  },
  actionsColumn((each) => <SubjectMenu subject={each} namespace={namespace} />),
]

export const accessCreation = (namespace: string): MenuItem => ({
  label: words.add.label,
  dialog: (onClose) => <Add namespace={namespace} onClose={onClose} />,
})

export function RoleBindings() {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(listRoleBindings, isLoaded ? [main] : [])
  const items = list.items.find(({ name }) => name === devRole)?.subjects ?? []
  return (
    <TablePage
      words={words}
      beside={<span className="tag">{main}</span>}
      operation={listSubjects}
      input={{ params: { namespace: main, role: devRole } }}
      create={accessCreation(main)}
      list={{ ...list, items }}
      columns={useMemo(() => columnsFor(main), [main])}
      keyOf={(each) => `${each.kind} ${each.namespace} ${each.name}`}
    />
  )
}

const inputFor = ({ kind, name, namespace = '' }: Subject): SubjectsInput =>
  kind === 'User' ? { users: [name] } : { serviceaccounts: [{ name, namespace }] }

function SubjectMenu({ subject, namespace }: { readonly subject: Subject; readonly namespace: string }) {
  const { name } = subject
  const remove = removal({
    name,
    words: words.remove,
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
