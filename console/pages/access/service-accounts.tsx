// Service accounts and their tokens, for administrators. A token is shown once, in the dialog that created it.
import {
  createServiceAccount,
  createServiceAccountToken,
  deleteServiceAccount,
  listServiceAccounts,
  type ServiceAccount,
} from '../../../src/api/access/service-accounts.ts'
import { creationOf, deletionOf, formItem, removeItem, SecretDialog } from '../../ui/action-dialog.tsx'
import { openDialog } from '../../ui/dialog.tsx'
import { CheckField, filled, TextField } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import { type Column, timeColumn } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'

const noun = 'service account'
const deleteWords = deletionOf(noun, 'All its tokens stop working immediately.')

const columns: readonly Column<ServiceAccount>[] = [
  nameColumn(),
  { title: 'Namespace', by: (each) => each.namespace, look: 'wide' },
  timeColumn('Created', (each) => each.createdAt),
  menuColumn(({ name }) => name, accountItems),
]

export const accountCreation = (namespace: string): MenuItem =>
  formItem({
    words: creationOf(noun),
    operation: createServiceAccount,
    initial: { serviceaccount: '' },
    input: ({ serviceaccount }) => ({ params: { namespace, serviceaccount } }),
    createdName: ({ serviceaccount }) => serviceaccount,
    needs: { serviceaccount: 'Name' },
    fields: ({ field }) => (
      <TextField
        label="Name"
        hint="Lowercase letters, digits, dashes and periods"
        {...field('serviceaccount')}
        also="name"
        autoFocus
      />
    ),
  })

export const ServiceAccounts = () => (
  <TablePage
    title="Service accounts"
    emptyTitle="No service accounts yet"
    emptyText="CI systems log in with the token of a service account."
    operation={listServiceAccounts}
    create={accountCreation}
    columns={columns}
  />
)

function accountItems({ name, namespace }: ServiceAccount): readonly MenuItem[] {
  const params = { namespace, serviceaccount: name }
  const title = `Create token for ${name}`
  return [
    formItem({
      words: {
        label: 'Create token',
        title: () => title,
        text: 'The token is shown once. To revoke it, delete the service account.',
      },
      name,
      operation: createServiceAccountToken,
      initial: { duration: '', noExpiration: false },
      input: ({ duration, noExpiration }) => ({ params, body: noExpiration ? { noExpiration } : filled({ duration }) }),
      onDone: ({ token, expiresAt }) =>
        openDialog((onClose) => (
          <SecretDialog
            title={title}
            text="Copy the token now. It is not shown again."
            secret={token}
            what="token"
            onClose={onClose}
          >
            {expiresAt === null ? (
              'Valid until the service account is deleted.'
            ) : (
              <>
                Expires <Time at={expiresAt} />
              </>
            )}
          </SecretDialog>
        )),
      fields: ({ field, values }) => (
        <>
          <TextField
            label="Valid for"
            hint="For example 30d or 8760h (default: 1 year)"
            {...field('duration')}
            readOnly={values.noExpiration}
            autoFocus
          />
          <CheckField label="Never expires" {...field('noExpiration')} />
        </>
      ),
    }),
    removeItem({ name, words: deleteWords, operation: deleteServiceAccount, input: { params } }),
  ]
}
