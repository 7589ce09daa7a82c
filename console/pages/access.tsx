// Who may work in a namespace as a developer, for administrators.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import {
  addSubjects,
  listSubjects,
  removeSubjects,
  type Subject,
  type SubjectsInput,
} from '../../src/api/role-bindings.ts'
import { devRole } from '../../src/rules/names.ts'
import { client } from '../api/client.ts'
import { useNamespaces } from '../api/namespaces.ts'
import { texts } from '../texts.ts'
import { ActionDialog } from '../ui/action-dialog.tsx'
import { Button } from '../ui/button.tsx'
import { TextField } from '../ui/field.tsx'
import { Menu } from '../ui/menu.tsx'
import { Empty, ErrorNote } from '../ui/notes.tsx'
import { Loading, Page } from '../ui/page.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { TeachPage } from '../ui/teach.tsx'
import { parseAccounts, parseNames } from './subjects.ts'

const words = texts.access
const refreshMs = 5_000

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

const keyFor = (namespace: string) => ['subjects', namespace]

/** The content of one record: it has no watch, and is looked at again after each change and every few seconds. */
export function Access() {
  const { main } = useNamespaces()
  const [isOpen, setOpen] = useState(false)
  const params = { namespace: main, role: devRole }
  const { data, error, isPending } = useQuery({
    queryKey: keyFor(main),
    queryFn: ({ signal }) => client.call(listSubjects, { params, signal }),
    refetchInterval: refreshMs,
  })
  const items = data?.items ?? []
  const add = (
    <Button kind="primary" onClick={() => setOpen(true)}>
      {words.add}
    </Button>
  )
  return (
    <Page
      title={words.title}
      beside={<span className="tag">{main}</span>}
      actions={
        <>
          <TeachPage operation={listSubjects} input={{ params }} />
          {add}
        </>
      }
    >
      <p className="muted">{words.text}</p>
      <ErrorNote error={error} />
      {isPending ? (
        <Loading />
      ) : items.length === 0 ? (
        <Empty title={words.emptyTitle} text={words.emptyText}>
          {add}
        </Empty>
      ) : (
        <Table
          label={words.title}
          columns={columnsFor(main)}
          rows={items}
          keyOf={(each) => `${each.kind} ${each.namespace} ${each.name}`}
        />
      )}
      {isOpen && <Add namespace={main} onClose={() => setOpen(false)} />}
    </Page>
  )
}

const inputFor = ({ kind, name, namespace = '' }: Subject): SubjectsInput =>
  kind === 'User' ? { users: [name] } : { serviceaccounts: [{ name, namespace }] }

function SubjectMenu({ subject, namespace }: { readonly subject: Subject; readonly namespace: string }) {
  const [isOpen, setOpen] = useState(false)
  const queries = useQueryClient()
  return (
    <>
      <Menu
        label={texts.common.actionsOf(subject.name)}
        items={[{ label: words.remove, isDanger: true, onChoose: () => setOpen(true) }]}
        size="small"
      />
      {isOpen && (
        <ActionDialog
          title={`${words.remove}: ${subject.name}`}
          text={words.removeText}
          label={words.remove}
          operation={removeSubjects}
          input={{ params: { namespace, role: devRole }, body: inputFor(subject) }}
          isDanger
          confirm={subject.name}
          said={texts.actions.done(words.remove, subject.name)}
          onClose={() => setOpen(false)}
          onDone={(answer) => {
            queries.setQueryData(keyFor(namespace), answer)
            setOpen(false)
          }}
        />
      )}
    </>
  )
}

function Add({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [users, setUsers] = useState('')
  const [accounts, setAccounts] = useState('')
  const queries = useQueryClient()
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
      onDone={(answer) => {
        queries.setQueryData(keyFor(namespace), answer)
        onClose()
      }}
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
