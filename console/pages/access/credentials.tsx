// Credentials for registries, for administrators. Passwords go in and never come out.
import { useMemo } from 'react'
import {
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../../src/api/access/registry-credentials.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { removal } from '../../ui/action-dialog.tsx'
import { ActionsMenu } from '../../ui/menu.tsx'
import { actionsColumn, type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { credentialCreation } from './add-credentials.tsx'
import { credentialTexts as words } from './texts.ts'

const columnsFor = (namespace: string): readonly Column<RegistryCredential>[] => [
  { title: words.server, look: 'name', by: (each) => each.server, cell: (each) => <b>{each.server}</b> },
  { title: words.username, by: (each) => each.username },
  { title: words.updatedBy, by: (each) => each.updatedBy, look: 'wide' },
  timeColumn(texts.common.updated, (each) => each.updatedAt),
  actionsColumn((each) => <CredentialMenu server={each.server} namespace={namespace} />),
]

/** They belong to one namespace: that of the choice at the left, or the main one. */
export function Credentials() {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(listRegistryCredentials, isLoaded ? [main] : [])
  return (
    <TablePage
      words={words}
      beside={<span className="tag">{main}</span>}
      operation={listRegistryCredentials}
      input={{ params: { namespace: main } }}
      create={credentialCreation(main)}
      list={list}
      columns={useMemo(() => columnsFor(main), [main])}
    />
  )
}

function CredentialMenu({ server, namespace }: { readonly server: string; readonly namespace: string }) {
  const remove = removal({
    name: server,
    words: words.remove,
    operation: removeRegistryCredential,
    input: { params: { namespace }, body: { server } },
  })
  return <ActionsMenu name={server} items={[remove]} size="small" />
}
