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
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { RecordsPage } from '../../ui/records-page.tsx'
import type { Column } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'

const words = texts.accounts

const columns: readonly Column<ServiceAccount>[] = [
  { title: texts.common.name, by: (each) => each.name, cell: (each) => <b>{each.name}</b> },
  { title: texts.common.namespace, by: (each) => each.namespace, look: 'wide', cell: (each) => each.namespace },
  {
    title: texts.common.created,
    by: (each) => each.createdAt,
    look: 'wide',
    cell: (each) => <Time at={each.createdAt} />,
  },
  { title: texts.common.actions, look: 'end', cell: (each) => <AccountMenu account={each} /> },
]

export function ServiceAccounts() {
  const { shown, main } = useNamespaces()
  const list = useLive(listServiceAccounts, shown)
  const [isOpen, setOpen] = useState(false)
  return (
    <RecordsPage
      words={words}
      teach={<TeachPage operation={listServiceAccounts} input={{ params: { namespace: main } }} />}
      create={
        <Button kind="primary" onClick={() => setOpen(true)}>
          {words.create}
        </Button>
      }
      list={list}
      columns={columns}
      keyOf={(each) => `${each.namespace}/${each.name}`}
    >
      {isOpen && <Create namespace={main} onClose={() => setOpen(false)} />}
    </RecordsPage>
  )
}

function AccountMenu({ account }: { readonly account: ServiceAccount }) {
  const { name, namespace } = account
  const remove = (onClose: () => void) => (
    <RemoveDialog
      name={name}
      text={words.deleteText}
      operation={deleteServiceAccount}
      input={{ params: { namespace, serviceaccount: name } }}
      onClose={onClose}
    />
  )
  const makeToken = (onClose: () => void) => <MakeToken account={account} onClose={onClose} />
  const items = [
    { label: words.token, onChoose: () => openDialog(makeToken) },
    { label: texts.actions.delete.label, isDanger: true, onChoose: () => openDialog(remove) },
  ]
  return <Menu label={texts.common.actionsOf(name)} items={items} size="small" />
}

function MakeToken({ account, onClose }: { readonly account: ServiceAccount; readonly onClose: () => void }) {
  const [duration, setDuration] = useState('')
  const [noExpiration, setNoExpiration] = useState(false)
  const [made, setMade] = useState<{ readonly token: string; readonly expiresAt: string | null }>()
  const { name, namespace } = account
  const title = `${words.token}: ${name}`
  if (made)
    return (
      <Dialog title={title} onClose={onClose}>
        <p>{words.tokenOnce}</p>
        <Code text={made.token} what={words.token} />
        <p className="muted">
          {made.expiresAt === null ? (
            words.tokenNoEnd
          ) : (
            <>
              {words.tokenEnds} <Time at={made.expiresAt} />
            </>
          )}
        </p>
        <div className="dialog-foot">
          <Button kind="primary" onClick={onClose}>
            {texts.common.done}
          </Button>
        </div>
      </Dialog>
    )
  const body = noExpiration ? { noExpiration } : duration === '' ? {} : { duration }
  return (
    <ActionDialog
      title={title}
      text={words.tokenText}
      label={words.token}
      operation={createServiceAccountToken}
      input={{ params: { namespace, serviceaccount: name }, body }}
      onClose={onClose}
      onDone={setMade}
    >
      {(faults) => (
        <>
          <TextField
            label={words.duration}
            hint={words.durationHint}
            fault={faults.get('duration')}
            value={duration}
            onValue={setDuration}
            readOnly={noExpiration}
            autoFocus
          />
          <CheckField label={words.noExpiration} value={noExpiration} onValue={setNoExpiration} />
        </>
      )}
    </ActionDialog>
  )
}

function Create({ namespace, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const [name, setName] = useState('')
  return (
    <ActionDialog
      title={words.create}
      label={words.create}
      operation={createServiceAccount}
      input={{ params: { namespace, serviceaccount: name } }}
      reason={name === '' ? texts.common.name : undefined}
      said={texts.actions.done(words.create, name)}
      onClose={onClose}
    >
      {(faults) => (
        <TextField
          label={texts.common.name}
          hint={words.nameHint}
          fault={faults.get('serviceaccount') ?? faults.get('name')}
          value={name}
          onValue={setName}
          autoFocus
        />
      )}
    </ActionDialog>
  )
}
