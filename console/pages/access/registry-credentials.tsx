// Credentials for registries, for administrators. Passwords go in and never come out.
import { useState } from 'react'
import {
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../../src/api/access/registry-credentials.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { RecordsPage } from '../../ui/records-page.tsx'
import type { Column } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { AddCredentials } from './add-credentials.tsx'

const words = texts.credentials

const columnsFor = (namespace: string): readonly Column<RegistryCredential>[] => [
  { title: words.server, by: (each) => each.server, cell: (each) => <b>{each.server}</b> },
  { title: words.username, by: (each) => each.username, cell: (each) => each.username },
  { title: words.updatedBy, by: (each) => each.updatedBy, look: 'wide', cell: (each) => each.updatedBy },
  {
    title: texts.common.updated,
    by: (each) => each.updatedAt,
    look: 'wide',
    cell: (each) => <Time at={each.updatedAt} />,
  },
  {
    title: texts.common.actions,
    look: 'end',
    cell: (each) => <CredentialMenu credential={each} namespace={namespace} />,
  },
]

/** They belong to one namespace: that of the choice at the left, or the main one. */
export function RegistryCredentials() {
  const { main, isLoaded } = useNamespaces()
  const list = useLive(listRegistryCredentials, isLoaded ? [main] : [])
  const [isOpen, setOpen] = useState(false)
  return (
    <RecordsPage
      words={words}
      beside={<span className="tag">{main}</span>}
      teach={<TeachPage operation={listRegistryCredentials} input={{ params: { namespace: main } }} />}
      create={
        <Button kind="primary" onClick={() => setOpen(true)}>
          {words.add}
        </Button>
      }
      list={{ ...list, isLoaded: list.isLoaded && isLoaded }}
      columns={columnsFor(main)}
      keyOf={(each) => each.server}
    >
      {isOpen && <AddCredentials namespace={main} onClose={() => setOpen(false)} />}
    </RecordsPage>
  )
}

interface MenuProps {
  readonly credential: RegistryCredential
  readonly namespace: string
}

function CredentialMenu({ credential: { server }, namespace }: MenuProps) {
  const remove = (onClose: () => void) => (
    <RemoveDialog
      name={server}
      label={words.remove}
      text={words.removeText}
      operation={removeRegistryCredential}
      input={{ params: { namespace }, body: { server } }}
      onClose={onClose}
    />
  )
  const items = [{ label: words.remove, isDanger: true, onChoose: () => openDialog(remove) }]
  return <Menu label={texts.common.actionsOf(server)} items={items} size="small" />
}
