// Namespaces, for administrators.
import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../../src/api/access/namespaces.ts'
import { defaultNamespace } from '../../../src/rules/names.ts'
import { useLiveCluster } from '../../api/live.ts'
import { ActionDialog, type ActionWords, removal } from '../../ui/action-dialog.tsx'
import { CheckField, filled, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { actionsColumn, type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { nameColumn } from '../links.tsx'

const createWords: ActionWords = {
  label: 'Create namespace',
  done: (name) => `Namespace ${name} created`,
}

const deleteWords: ActionWords = {
  label: 'Delete',
  title: (name) => `Delete namespace ${name}?`,
  text: 'Its registry credentials, service accounts and role bindings are deleted too. Delete its VMs and move its nodes first.',
  done: (name) => `Namespace ${name} deleted`,
}

const columns: readonly Column<Namespace>[] = [
  nameColumn(),
  {
    title: 'Used for',
    by: (each) => Number(each.customPods),
    cell: (each) => (each.customPods ? 'Other workloads' : 'VMs'),
  },
  timeColumn('Created', (each) => each.createdAt),
  actionsColumn((each) => <NamespaceMenu name={each.name} />),
]

export const namespaceCreation: MenuItem = {
  label: createWords.label,
  dialog: (onClose) => <Create onClose={onClose} />,
}

export const Namespaces = () => (
  <TablePage
    title="Namespaces"
    operation={listNamespaces}
    input={{}}
    create={namespaceCreation}
    list={useLiveCluster(listNamespaces)}
    columns={columns}
  />
)

function NamespaceMenu({ name }: { readonly name: string }) {
  const remove = removal(
    { name, words: deleteWords, operation: deleteNamespace, input: { params: { namespace: name } } },
    name === defaultNamespace ? 'The default namespace cannot be deleted' : undefined,
  )
  return <ActionsMenu name={name} items={[remove]} size="small" />
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const { values, field } = useForm({ name: 'svc-', enableCustomPods: false })
  const { name, ...checks } = values
  return (
    <ActionDialog
      words={createWords}
      createdName={name}
      operation={createNamespace}
      input={{ body: { name, ...filled(checks) } }}
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="Starts with svc-; lowercase letters, digits and dashes"
        {...field('name')}
        autoFocus
      />
      <CheckField label="Reserve for other workloads (no VMs)" {...field('enableCustomPods')} />
    </ActionDialog>
  )
}
