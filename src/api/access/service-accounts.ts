// Service accounts, with which CI systems use the service. Their tokens are returned once and never stored.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { allowances, inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ExpectedVersion, ResourceVersion, Timestamp } from '../records.ts'

export const serviceAccountRoles = ['developer', 'administrator'] as const

const rights = {
  role: t.Enum([...serviceAccountRoles], { description: 'An administrator may do all except what is for people only' }),
  allow: t.Optional(
    t.Array(t.Enum([...allowances]), { maxItems: 10, description: 'What an administrator may do only if it is named' }),
  ),
}

export const ServiceAccount = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    uid: t.String({ description: 'Changes when an account of the same name is created again' }),
    createdAt: Timestamp,
    ...rights,
    resourceVersion: ResourceVersion,
  },
  { title: 'ServiceAccount' },
)
export type ServiceAccount = t.Static<typeof ServiceAccount>

const TokenRequest = t.Object(
  {
    duration: t.Optional(
      t.String({ minLength: 1, maxLength: 64, description: 'For example `8760h0m0s` or `30d`. Default: one year' }),
    ),
    noExpiration: t.Optional(t.Boolean({ description: 'Valid until the account is deleted. Refused with `duration`' })),
  },
  { title: 'TokenRequest' },
)
export type TokenRequest = t.Static<typeof TokenRequest>
export const IssuedToken = t.Object(
  {
    token: t.String(),
    expiresAt: t.Union([Timestamp, t.Null()], { description: 'Null: valid until the account is deleted' }),
  },
  { title: 'IssuedToken' },
)

const noun = 'service-accounts'
const operation = operationsOf({ noun, allow: 'admin' })
const path = `${inNamespace}/serviceaccounts` as const
const params = { namespace: 'svc-default', serviceaccount: 'jenkins' }
const example = {
  name: 'jenkins',
  namespace: 'svc-default',
  uid: '0f9c1c5e-6a53-4a40-9d63-6d9b2a1b8a55',
  createdAt: '2026-11-15T09:00:00Z',
  role: 'developer',
  resourceVersion: '11',
}

export const listServiceAccounts = listOperation({
  id: 'listServiceAccounts',
  noun,
  path,
  allow: 'admin',
  summary: 'List the service accounts of a namespace',
  item: ServiceAccount,
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const createServiceAccount = operation({
  id: 'createServiceAccount',
  method: 'POST',
  path: `${path}/{serviceaccount}`,
  status: 201,
  summary: 'Create a service account',
  involves: 'params.serviceaccount',
  past: 'created service account {name}',
  response: ServiceAccount,
  refuses: ['NotFound', 'AlreadyExists', 'Invalid', 'Conflict'],
  example: { params, response: example },
})

export const setServiceAccountRole = operation({
  id: 'setServiceAccountRole',
  method: 'PUT',
  path: `${path}/{serviceaccount}/role`,
  accounts: 'none',
  summary: 'Make a service account an administrator, or a developer again',
  involves: 'params.serviceaccount',
  past: 'changed the role of service account {name}',
  tells: ['role', 'allow'],
  description: 'For people only, as are tokens for administrators. Replaces what `allow` named before.',
  body: t.Object({ ...rights, resourceVersion: ExpectedVersion }, { title: 'ServiceAccountRole' }),
  response: ServiceAccount,
  refuses: ['NotFound', 'Invalid', 'Conflict'],
  example: {
    params,
    body: { role: 'administrator', allow: ['registrycredentials'] },
    response: { ...example, role: 'administrator', allow: ['registrycredentials'] },
  },
})

export const deleteServiceAccount = operation({
  id: 'deleteServiceAccount',
  method: 'DELETE',
  path: `${path}/{serviceaccount}`,
  summary: 'Delete a service account and revoke its tokens',
  involves: 'params.serviceaccount',
  past: 'deleted service account {name}',
  response: Status,
  refuses: ['NotFound'],
  example: {
    params,
    response: success('Service account jenkins deleted from svc-default', {
      name: 'jenkins',
      kind: 'serviceaccounts',
    }),
  },
})

export const createServiceAccountToken = operation({
  id: 'createServiceAccountToken',
  method: 'POST',
  path: `${path}/{serviceaccount}/token`,
  status: 201,
  summary: 'Create a token for a service account',
  involves: 'params.serviceaccount',
  past: 'created a token for service account {name}',
  tells: ['duration', 'noExpiration'],
  description: 'Shown once. To revoke a token, delete the account.',
  body: TokenRequest,
  bodyIsOptional: true,
  secretAnswer: true,
  response: IssuedToken,
  refuses: ['NotFound', 'Invalid'],
  example: {
    params,
    body: { duration: '8760h0m0s' },
    response: { token: 'eyJhbGciOiJFZERTQSJ9.e30.c2ln', expiresAt: '2027-11-15T09:00:00Z' },
  },
})
