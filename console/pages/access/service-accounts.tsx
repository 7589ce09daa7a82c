// Service accounts and their tokens, for administrators. A token is shown once, in the dialog that created it.
import { useState } from 'react'
import {
  createServiceAccount,
  createServiceAccountToken,
  deleteServiceAccount,
  listServiceAccounts,
  type ServiceAccount,
} from '../../../src/api/access/service-accounts.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { ActionDialog, type ActionWords, removal, SecretDialog } from '../../ui/action-dialog.tsx'
import { CheckField, required, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { actionsColumn, type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { nameColumn } from '../links.tsx'

const createWords: ActionWords = {
  label: 'Create service account',
  done: (name) => `Service account ${name} created`,
}

const tokenWords = {
  label: 'Create token',
  title: (name: string) => `Create token for ${name}`,
  text: 'The token is shown once. To revoke it, delete the service account.',
}

const deleteWords: ActionWords = {
  label: 'Delete',
  title: (name) => `Delete service account ${name}?`,
  text: 'All its tokens stop working immediately.',
  done: (name) => `Service account ${name} deleted`,
}

const columns: readonly Column<ServiceAccount>[] = [
  nameColumn(),
  { title: 'Namespace', by: (each) => each.namespace, look: 'wide' },
  timeColumn('Created', (each) => each.createdAt),
  actionsColumn((each) => <AccountMenu account={each} />),
]

export const accountCreation = (namespace: string): MenuItem => ({
  label: createWords.label,
  dialog: (onClose) => <Create namespace={namespace} onClose={onClose} />,
})

export function ServiceAccounts() {
  const { shown, main } = useNamespaces()
  return (
    <TablePage
      title="Service accounts"
      emptyTitle="No service accounts yet"
      emptyText="CI systems log in with the token of a service account."
      operation={listServiceAccounts}
      input={{ params: { namespace: main } }}
      create={accountCreation(main)}
      list={useLive(listServiceAccounts, shown)}
      columns={columns}
    />
  )
}

function AccountMenu({ account }: { readonly account: ServiceAccount }) {
  const { name, namespace } = account
  const params = { namespace, serviceaccount: name }
  const items = [
    {
      label: tokenWords.label,
      dialog: (onClose: () => void) => <MakeToken name={name} params={params} onClose={onClose} />,
    },
    removal({ name, words: deleteWords, operation: deleteServiceAccount, input: { params } }),
  ]
  return <ActionsMenu name={name} items={items} size="small" />
}

interface MakeTokenProps {
  readonly name: string
  readonly params: { readonly namespace: string; readonly serviceaccount: string }
  readonly onClose: () => void
}

function MakeToken({ name, params, onClose }: MakeTokenProps) {
  const { values, field } = useForm({ duration: '', noExpiration: false })
  const [created, setCreated] = useState<{ readonly token: string; readonly expiresAt: string | null }>()
  const { duration, noExpiration } = values
  if (created)
    return (
      <SecretDialog
        title={tokenWords.title(name)}
        text="Copy the token now. It is not shown again."
        secret={created.token}
        what="token"
        onClose={onClose}
      >
        {created.expiresAt === null ? (
          'Valid until the service account is deleted.'
        ) : (
          <>
            Expires <Time at={created.expiresAt} />
          </>
        )}
      </SecretDialog>
    )
  const body = noExpiration ? { noExpiration } : duration === '' ? {} : { duration }
  return (
    <ActionDialog
      words={tokenWords}
      name={name}
      operation={createServiceAccountToken}
      input={{ params, body }}
      onClose={onClose}
      onDone={setCreated}
    >
      <TextField
        label="Valid for"
        hint="For example 30d or 8760h (default: 1 year)"
        {...field('duration')}
        readOnly={noExpiration}
        autoFocus
      />
      <CheckField label="Never expires" {...field('noExpiration')} />
    </ActionDialog>
  )
}

function Create({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [name, setName] = useState('')
  return (
    <ActionDialog
      words={createWords}
      createdName={name}
      operation={createServiceAccount}
      input={{ params: { namespace, serviceaccount: name } }}
      reason={name === '' ? required('Name') : undefined}
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="Lowercase letters, digits, dashes and periods"
        field="serviceaccount"
        also="name"
        value={name}
        onValue={setName}
        autoFocus
      />
    </ActionDialog>
  )
}
