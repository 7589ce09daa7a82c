// Registry credentials, for administrators. Passwords are never returned.
import {
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../../src/api/access/registry-credentials.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { type ActionWords, removeItem } from '../../ui/action-dialog.tsx'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { menuColumn } from '../columns.tsx'
import { credentialCreation } from './add-credentials.tsx'

const removeWords: ActionWords = {
  label: 'Remove',
  title: (server) => `Remove credentials for ${server}?`,
  text: 'Pulls and pushes that need them will fail.',
  done: (server) => `Credentials for ${server} removed`,
}

const columns: readonly Column<RegistryCredential>[] = [
  { title: 'Registry', look: 'name', by: (each) => each.server, cell: (each) => <b>{each.server}</b> },
  { title: 'User name', by: (each) => each.username },
  { title: 'Added by', by: (each) => each.updatedBy, look: 'wide' },
  timeColumn('Updated', (each) => each.updatedAt),
  menuColumn(
    ({ server }) => server,
    ({ server }, { main: namespace }) => [
      removeItem({
        name: server,
        words: removeWords,
        operation: removeRegistryCredential,
        input: { params: { namespace }, body: { server } },
      }),
    ],
  ),
]

/** Credentials belong to one namespace: the chosen one, or the default. */
export function Credentials() {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(listRegistryCredentials, isLoaded ? [main] : [])
  return (
    <TablePage
      title="Registry credentials"
      text="Used to pull and push images in this namespace. Passwords are stored encrypted and never shown."
      emptyTitle="No credentials yet"
      emptyText="Add a user name and password for each private registry."
      beside={<span className="tag">{main}</span>}
      operation={listRegistryCredentials}
      create={credentialCreation}
      list={list}
      columns={columns}
    />
  )
}
