// The dialog that adds registry credentials, on their page and in the push dialog.
import { addRegistryCredential } from '../../../src/api/access/registry-credentials.ts'
import { type ActionWords, FormDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, SecretField, TextField } from '../../ui/field.tsx'
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

export const AddCredentials = ({ namespace, server, onClose }: Props) => (
  <FormDialog
    words={addWords}
    operation={addRegistryCredential}
    initial={{ server: server ?? 'https://', username: '', password: '', allowInsecure: false, replace: false }}
    input={({ server, username, password, ...checks }) => ({
      params: { namespace },
      body: { server, username, password, ...filled(checks) },
    })}
    createdName={(values) => values.server}
    needs={{ username: 'User name', password: 'Password' }}
    onClose={onClose}
    fields={({ field }) => (
      <>
        <TextField
          label="Registry"
          hint="Include the scheme, for example https://ghcr.io"
          {...field('server')}
          autoFocus={server === undefined}
        />
        <div className="fields">
          <TextField label="User name" {...field('username')} autoFocus={server !== undefined} />
          <SecretField label="Password" autoComplete="new-password" {...field('password')} />
        </div>
        <CheckField label="Allow plain HTTP" {...field('allowInsecure')} />
        <CheckField label="Replace existing credentials for this registry" {...field('replace')} />
      </>
    )}
  />
)
