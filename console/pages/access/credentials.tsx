// Credentials for registries: the page of administrators, and the dialog that adds one, also where a push lacks it. Passwords
// go in and never come out.
import {
  addRegistryCredential,
  listRegistryCredentials,
  type RegistryCredential,
  removeRegistryCredential,
} from '../../../src/api/access/registry-credentials.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, removal } from '../../ui/action-dialog.tsx'
import { CheckField, filled, SecretField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu } from '../../ui/menu.tsx'
import { actionsColumn, type Column, TablePage, timeColumn } from '../../ui/table.tsx'
import { credentialTexts as words } from './texts.ts'

const columnsFor = (namespace: string): readonly Column<RegistryCredential>[] => [
  { title: words.server, by: (each) => each.server, cell: (each) => <b>{each.server}</b> },
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
      create={{ label: words.add, dialog: (onClose) => <AddCredentials namespace={main} onClose={onClose} /> }}
      list={{ ...list, isLoaded: list.isLoaded && isLoaded }}
      columns={columnsFor(main)}
    />
  )
}

function CredentialMenu({ server, namespace }: { readonly server: string; readonly namespace: string }) {
  const remove = removal({
    name: server,
    label: words.remove,
    text: words.removeText,
    operation: removeRegistryCredential,
    input: { params: { namespace }, body: { server } },
  })
  return <ActionsMenu name={server} items={[remove]} size="small" />
}

interface Props {
  readonly namespace: string
  /** Where it is known which registry they are for. */
  readonly server?: string
  readonly onClose: () => void
}

export function AddCredentials({ namespace, server: known, onClose }: Props) {
  const { values, field } = useForm({
    server: known ?? 'https://',
    username: '',
    password: '',
    allowInsecure: false,
    replace: false,
  })
  const { server, username, password, ...checks } = values
  return (
    <ActionDialog
      label={words.add}
      made={server}
      operation={addRegistryCredential}
      input={{ params: { namespace }, body: { server, username, password, ...filled(checks) } }}
      reason={username === '' ? words.username : password === '' ? words.password : undefined}
      onClose={onClose}
    >
      <TextField label={words.server} hint={words.serverHint} {...field('server')} autoFocus={known === undefined} />
      <div className="fields">
        <TextField label={words.username} {...field('username')} autoFocus={known !== undefined} />
        <SecretField label={words.password} autoComplete="new-password" {...field('password')} />
      </div>
      <CheckField label={words.allowInsecure} {...field('allowInsecure')} />
      <CheckField label={words.replace} {...field('replace')} />
    </ActionDialog>
  )
}
