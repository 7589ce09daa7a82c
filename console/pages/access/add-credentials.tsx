// Credentials for a registry: on their own page, and where a push lacks them.
import { useState } from 'react'
import { addRegistryCredential } from '../../../src/api/access/registry-credentials.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { CheckField, SecretField, TextField } from '../../ui/field.tsx'

const words = texts.credentials

interface Props {
  readonly namespace: string
  /** Where it is known which registry they are for. */
  readonly server?: string
  readonly onClose: () => void
}

export function AddCredentials({ namespace, server: first = 'https://', onClose }: Props) {
  const [server, setServer] = useState(first)
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const [allowInsecure, setInsecure] = useState(false)
  const [replace, setReplace] = useState(false)
  const body = { server, username, password, ...(allowInsecure && { allowInsecure }), ...(replace && { replace }) }
  return (
    <ActionDialog
      title={words.add}
      label={words.add}
      operation={addRegistryCredential}
      input={{ params: { namespace }, body }}
      reason={username === '' ? words.username : password === '' ? words.password : undefined}
      said={texts.actions.done(words.add, server)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <TextField
            label={words.server}
            hint={words.serverHint}
            fault={faults.get('server')}
            value={server}
            onValue={setServer}
            autoFocus={first === 'https://'}
          />
          <div className="fields">
            <TextField
              label={words.username}
              fault={faults.get('username')}
              value={username}
              onValue={setUsername}
              autoFocus={first !== 'https://'}
            />
            <SecretField
              label={words.password}
              autoComplete="new-password"
              fault={faults.get('password')}
              onValue={setPassword}
            />
          </div>
          <CheckField label={words.allowInsecure} value={allowInsecure} onValue={setInsecure} />
          <CheckField label={words.replace} value={replace} onValue={setReplace} />
        </>
      )}
    </ActionDialog>
  )
}
