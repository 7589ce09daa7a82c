// Namespaces, for administrators.
import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../../src/api/access/namespaces.ts'
import { defaultNamespace } from '../../../src/rules/names.ts'
import { useLiveCluster } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, removal } from '../../ui/action-dialog.tsx'
import { CheckField, filled, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { actionsColumn, type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { nameColumn } from '../links.tsx'
import { namespaceTexts as words } from './texts.ts'

const columns: readonly Column<Namespace>[] = [
  nameColumn(),
  {
    title: words.use,
    by: (each) => Number(each.customPods),
    cell: (each) => (each.customPods ? words.forPods : words.forVms),
  },
  timeColumn(texts.common.created, (each) => each.createdAt),
  actionsColumn((each) => <NamespaceMenu name={each.name} />),
]

export const namespaceCreation: MenuItem = {
  label: words.create.label,
  dialog: (onClose) => <Create onClose={onClose} />,
}

export const Namespaces = () => (
  <TablePage
    words={words}
    operation={listNamespaces}
    input={{}}
    create={namespaceCreation}
    list={useLiveCluster(listNamespaces)}
    columns={columns}
  />
)

function NamespaceMenu({ name }: { readonly name: string }) {
  const remove = removal(
    { name, words: words.delete, operation: deleteNamespace, input: { params: { namespace: name } } },
    name === defaultNamespace ? words.isDefault : undefined,
  )
  return <ActionsMenu name={name} items={[remove]} size="small" />
}

function Create({ onClose }: { readonly onClose: () => void }) {
  const { values, field } = useForm({ name: 'svc-', enableCustomPods: false })
  const { name, ...checks } = values
  return (
    <ActionDialog
      words={words.create}
      made={name}
      operation={createNamespace}
      input={{ body: { name, ...filled(checks) } }}
      onClose={onClose}
    >
      <TextField label={texts.common.name} hint={words.nameHint} {...field('name')} autoFocus />
      <CheckField label={words.customPods} {...field('enableCustomPods')} />
    </ActionDialog>
  )
}
