// The dialog that adds registry credentials, on their page and in the push dialog.
import { addRegistryCredential } from '../../../src/api/access/registry-credentials.ts'
import { ActionDialog, type ActionWords } from '../../ui/action-dialog.tsx'
import { CheckField, filled, required, SecretField, TextField, useForm } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'

export const addWords: ActionWords = {
  label: 'Add credentials',
  title: () => 'Add registry credentials',
  done: (server) => `Credentials for ${server} added`,
}

export const credentialCreation = (namespace: string): MenuItem => ({
  label: addWords.label,
  dialog: (onClose) => <AddCredentials namespace={namespace} onClose={onClose} />,
})

interface Props {
  readonly namespace: string
  /** Preset in the push dialog. */
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
  const missing = username === '' ? 'User name' : password === '' ? 'Password' : undefined
  return (
    <ActionDialog
      words={addWords}
      createdName={server}
      operation={addRegistryCredential}
      input={{ params: { namespace }, body: { server, username, password, ...filled(checks) } }}
      reason={missing && required(missing)}
      onClose={onClose}
    >
      <TextField
        label="Registry"
        hint="Include the scheme, for example https://ghcr.io"
        {...field('server')}
        autoFocus={known === undefined}
      />
      <div className="fields">
        <TextField label="User name" {...field('username')} autoFocus={known !== undefined} />
        <SecretField label="Password" autoComplete="new-password" {...field('password')} />
      </div>
      <CheckField label="Allow plain HTTP" {...field('allowInsecure')} />
      <CheckField label="Replace existing credentials for this registry" {...field('replace')} />
    </ActionDialog>
  )
}
