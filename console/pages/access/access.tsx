// Who may work in a namespace as a developer, for administrators.
import { useState } from 'react'
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
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { RecordsPage } from '../../ui/records-page.tsx'
import type { Column } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { parseAccounts, parseNames } from './subjects.ts'

const words = texts.access

const columnsFor = (namespace: string): readonly Column<Subject>[] => [
  { title: texts.common.name, by: (each) => each.name, cell: (each) => <b>{each.name}</b> },
  { title: words.kind, by: (each) => each.kind, cell: (each) => each.kind },
  {
    title: texts.common.namespace,
    by: (each) => each.namespace ?? '',
    look: 'wide',
    cell: (each) => each.namespace ?? '–',
  },
  { title: texts.common.actions, look: 'end', cell: (each) => <SubjectMenu subject={each} namespace={namespace} /> },
]

export function Access() {
  const { main, isLoaded } = useNamespaces()
  const [isOpen, setOpen] = useState(false)
  const params = { namespace: main, role: devRole }
  const list = useLive(listRoleBindings, isLoaded ? [main] : [])
  const items = list.items.find(({ name }) => name === devRole)?.subjects ?? []
  return (
    <RecordsPage
      words={words}
      beside={<span className="tag">{main}</span>}
      teach={<TeachPage operation={listSubjects} input={{ params }} />}
      create={
        <Button kind="primary" onClick={() => setOpen(true)}>
          {words.add}
        </Button>
      }
      list={{ ...list, items, isLoaded: list.isLoaded && isLoaded }}
      columns={columnsFor(main)}
      keyOf={(each) => `${each.kind} ${each.namespace} ${each.name}`}
    >
      {isOpen && <Add namespace={main} onClose={() => setOpen(false)} />}
    </RecordsPage>
  )
}

const inputFor = ({ kind, name, namespace = '' }: Subject): SubjectsInput =>
  kind === 'User' ? { users: [name] } : { serviceaccounts: [{ name, namespace }] }

function SubjectMenu({ subject, namespace }: { readonly subject: Subject; readonly namespace: string }) {
  const { name } = subject
  const remove = (onClose: () => void) => (
    <RemoveDialog
      name={name}
      label={words.remove}
      text={words.removeText}
      operation={removeSubjects}
      input={{ params: { namespace, role: devRole }, body: inputFor(subject) }}
      onClose={onClose}
    />
  )
  const items = [{ label: words.remove, isDanger: true, onChoose: () => openDialog(remove) }]
  return <Menu label={texts.common.actionsOf(name)} items={items} size="small" />
}

function Add({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [users, setUsers] = useState('')
  const [accounts, setAccounts] = useState('')
  const body: SubjectsInput = { users: parseNames(users), serviceaccounts: parseAccounts(accounts, namespace) }
  const isEmpty = (body.users ?? []).length + (body.serviceaccounts ?? []).length === 0
  return (
    <ActionDialog
      title={words.add}
      text={words.emptyText}
      label={words.add}
      operation={addSubjects}
      input={{ params: { namespace, role: devRole }, body }}
      reason={isEmpty ? words.users : undefined}
      said={texts.actions.done(words.add, namespace)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={words.users}
            hint={words.usersHint}
            fault={faults.get('users')}
            value={users}
            onValue={setUsers}
            autoFocus
          />
          <TextField
            label={words.accounts}
            hint={words.accountsHint}
            fault={faults.get('serviceaccounts')}
            value={accounts}
            onValue={setAccounts}
          />
        </>
      )}
    </ActionDialog>
  )
}
