// Credentials for registries, for administrators. Passwords go in and never come out.
import { useState } from 'react'
import {
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../src/api/registry-credentials.ts'
import { useLive } from '../api/live.ts'
import { useNamespaces } from '../api/namespaces.ts'
import { texts } from '../texts.ts'
import { ActionDialog } from '../ui/action-dialog.tsx'
import { Button } from '../ui/button.tsx'
import { Menu } from '../ui/menu.tsx'
import { Empty } from '../ui/notes.tsx'
import { Loaded, Page } from '../ui/page.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { TeachPage } from '../ui/teach.tsx'
import { Time } from '../ui/time.tsx'
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
          <TeachPage operation={listRegistryCredentials} input={{ params: { namespace: main } }} />
          {add}
        </>
      }
    >
      <p className="muted">{words.text}</p>
      <Loaded
        list={{ ...list, isLoaded: list.isLoaded && isLoaded }}
        empty={
          <Empty title={words.emptyTitle} text={words.emptyText}>
            {add}
          </Empty>
        }
      >
        <Table label={words.title} columns={columnsFor(main)} rows={list.items} keyOf={(each) => each.server} />
      </Loaded>
      {isOpen && <AddCredentials namespace={main} onClose={() => setOpen(false)} />}
    </Page>
  )
}

interface MenuProps {
  readonly credential: RegistryCredential
  readonly namespace: string
}

function CredentialMenu({ credential: { server }, namespace }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const items = [{ label: words.remove, isDanger: true, onChoose: () => setOpen(true) }]
  return (
    <>
      <Menu label={texts.common.actionsOf(server)} items={items} size="small" />
      {isOpen && (
        <ActionDialog
          title={`${words.remove}: ${server}`}
          text={words.removeText}
          label={words.remove}
          operation={removeRegistryCredential}
          input={{ params: { namespace }, body: { server } }}
          isDanger
          confirm={server}
          said={texts.actions.done(words.remove, server)}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  )
}
