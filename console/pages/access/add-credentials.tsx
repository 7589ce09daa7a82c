// Credentials for a registry: on their own page, and where a push lacks them.
import { addRegistryCredential } from '../../../src/api/access/registry-credentials.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, SecretField, TextField, useForm } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { credentialTexts as words } from './texts.ts'

export const credentialCreation = (namespace: string): MenuItem => ({
  label: words.add.label,
  dialog: (onClose) => <AddCredentials namespace={namespace} onClose={onClose} />,
})

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
  const missing = username === '' ? words.username : password === '' ? words.password : undefined
  return (
    <ActionDialog
      words={words.add}
      made={server}
      operation={addRegistryCredential}
      input={{ params: { namespace }, body: { server, username, password, ...filled(checks) } }}
      reason={missing && texts.common.required(missing)}
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
