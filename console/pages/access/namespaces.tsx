// Namespaces, for administrators.
import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../../src/api/access/namespaces.ts'
import { defaultNamespace } from '../../../src/rules/names.ts'
import { useLiveCluster } from '../../api/live.ts'
import { creationOf, deletionOf, formItem, removeItem } from '../../ui/action-dialog.tsx'
import { CheckField, filled, TextField } from '../../ui/field.tsx'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'

const deleteWords = deletionOf(
  'namespace',
  'Its registry credentials, service accounts and role bindings are deleted too. Delete its VMs and move its nodes first.',
)

const columns: readonly Column<Namespace>[] = [
  nameColumn(),
  {
    title: 'Used for',
    by: (each) => Number(each.customPods),
    cell: (each) => (each.customPods ? 'Other workloads' : 'VMs'),
  },
  timeColumn('Created', (each) => each.createdAt),
  menuColumn(
    ({ name }) => name,
    ({ name }) => [
      removeItem({
        name,
        words: deleteWords,
        operation: deleteNamespace,
        input: { params: { namespace: name } },
        reason: name === defaultNamespace ? 'The default namespace cannot be deleted' : undefined,
      }),
    ],
  ),
]

export const namespaceCreation = formItem({
  words: creationOf('namespace'),
  operation: createNamespace,
  initial: { name: 'svc-', enableCustomPods: false },
  input: ({ name, ...checks }) => ({ body: { name, ...filled(checks) } }),
  createdName: ({ name }) => name,
  fields: ({ field }) => (
    <>
      <TextField
        label="Name"
        hint="Starts with svc-; lowercase letters, digits and dashes"
        {...field('name')}
        autoFocus
      />
      <CheckField label="Reserve for other workloads (no VMs)" {...field('enableCustomPods')} />
    </>
  ),
})

export const Namespaces = () => (
  <TablePage
    title="Namespaces"
    operation={listNamespaces}
    create={namespaceCreation}
    list={useLiveCluster(listNamespaces)}
    columns={columns}
  />
)
