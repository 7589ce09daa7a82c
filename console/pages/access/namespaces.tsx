// Namespaces, for administrators.
import { useState } from 'react'
import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../../src/api/access/namespaces.ts'
import { defaultNamespace } from '../../../src/rules/names.ts'
import { useLiveCluster } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { Loaded, Page } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'

const words = texts.namespaces

const columns: readonly Column<Namespace>[] = [
  { title: texts.common.name, by: (each) => each.name, cell: (each) => <b>{each.name}</b> },
  {
    title: words.use,
    by: (each) => Number(each.customPods),
    cell: (each) => (each.customPods ? words.forPods : words.forVms),
  },
  {
    title: texts.common.created,
    by: (each) => each.createdAt,
    look: 'wide',
    cell: (each) => <Time at={each.createdAt} />,
  },
  { title: texts.common.actions, look: 'end', cell: (each) => <NamespaceMenu name={each.name} /> },
]

export function NamespacesPage() {
  const list = useLiveCluster(listNamespaces)
  const [isOpen, setOpen] = useState(false)
  return (
    <Page
      title={words.title}
      actions={
        <>
          <TeachPage operation={listNamespaces} input={{}} />
          <Button kind="primary" onClick={() => setOpen(true)}>
            {words.create}
          </Button>
        </>
      }
    >
      <Loaded list={list}>
        <Table label={words.title} columns={columns} rows={list.items} keyOf={(each) => each.name} />
      </Loaded>
      {isOpen && <Create onClose={() => setOpen(false)} />}
    </Page>
  )
}

function NamespaceMenu({ name }: { readonly name: string }) {
  const reason = name === defaultNamespace ? words.isDefault : undefined
  const remove = (onClose: () => void) => (
    <RemoveDialog
      name={name}
      text={words.deleteText}
      operation={deleteNamespace}
      input={{ params: { namespace: name } }}
      onClose={onClose}
    />
  )
  const items = [{ label: texts.actions.delete.label, reason, isDanger: true, onChoose: () => openDialog(remove) }]
  return <Menu label={texts.common.actionsOf(name)} items={items} size="small" />
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('svc-')
  const [enableCustomPods, setCustomPods] = useState(false)
  return (
    <ActionDialog
      title={words.create}
      label={words.create}
      operation={createNamespace}
      input={{ body: { name, ...(enableCustomPods && { enableCustomPods }) } }}
      said={texts.actions.done(words.create, name)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={texts.common.name}
            hint={words.nameHint}
            fault={faults.get('name')}
            value={name}
            onValue={setName}
            autoFocus
          />
          <CheckField label={words.customPods} value={enableCustomPods} onValue={setCustomPods} />
        </>
      )}
    </ActionDialog>
  )
}
