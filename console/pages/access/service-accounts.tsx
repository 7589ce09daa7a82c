// Service accounts and their tokens, for administrators. A token is shown once, in the dialog that made it.
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
import { texts } from '../../texts.ts'
import { ActionDialog, removal, SecretDialog } from '../../ui/action-dialog.tsx'
import { CheckField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import { actionsColumn, type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { nameColumn } from '../links.tsx'
import { accountTexts as words } from './texts.ts'

const columns: readonly Column<ServiceAccount>[] = [
  nameColumn(),
  { title: texts.common.namespace, by: (each) => each.namespace, look: 'wide' },
  timeColumn(texts.common.created, (each) => each.createdAt),
  actionsColumn((each) => <AccountMenu account={each} />),
]

export const accountCreation = (namespace: string): MenuItem => ({
  label: words.create.label,
  dialog: (onClose) => <Create namespace={namespace} onClose={onClose} />,
})

export function ServiceAccounts() {
  const { shown, main } = useNamespaces()
  return (
    <TablePage
      words={words}
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
      label: words.token.label,
      dialog: (onClose: () => void) => <MakeToken name={name} params={params} onClose={onClose} />,
    },
    removal({ name, words: words.delete, operation: deleteServiceAccount, input: { params } }),
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
  const [made, setMade] = useState<{ readonly token: string; readonly expiresAt: string | null }>()
  const { duration, noExpiration } = values
  if (made)
    return (
      <SecretDialog
        title={words.token.title(name)}
        text={words.tokenOnce}
        secret={made.token}
        what={words.tokenName}
        onClose={onClose}
      >
        {made.expiresAt === null ? (
          words.tokenNoEnd
        ) : (
          <>
            {words.tokenEnds} <Time at={made.expiresAt} />
          </>
        )}
      </SecretDialog>
    )
  const body = noExpiration ? { noExpiration } : duration === '' ? {} : { duration }
  return (
    <ActionDialog
      words={words.token}
      name={name}
      operation={createServiceAccountToken}
      input={{ params, body }}
      onClose={onClose}
      onDone={setMade}
    >
      <TextField
        label={words.duration}
        hint={words.durationHint}
        {...field('duration')}
        readOnly={noExpiration}
        autoFocus
      />
      <CheckField label={words.noExpiration} {...field('noExpiration')} />
    </ActionDialog>
  )
}

function Create({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [name, setName] = useState('')
  return (
    <ActionDialog
      words={words.create}
      made={name}
      operation={createServiceAccount}
      input={{ params: { namespace, serviceaccount: name } }}
      reason={name === '' ? texts.common.required(texts.common.name) : undefined}
      onClose={onClose}
    >
      <TextField
        label={texts.common.name}
        hint={words.nameHint}
        field="serviceaccount"
        also="name"
        value={name}
        onValue={setName}
        autoFocus
      />
    </ActionDialog>
  )
}
