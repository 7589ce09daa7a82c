// Registry credentials (docs/spec.md R15–R20). No response schema has a field for the password.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ExpectedVersion, ResourceVersion, Timestamp } from '../records.ts'

export const RegistryCredential = t.Object(
  {
    server: t.String({ description: '`<scheme>://<hostname>[:<port>]`, normalised' }),
    name: t.String({
      description: 'The registry, for which there is one set: `ghcr.io`, `10.0.0.7:5000`, `docker.io`',
    }),
    username: t.String(),
    allowInsecure: t.Boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    updatedBy: t.String({ description: 'User who stored them last' }),
    resourceVersion: ResourceVersion,
  },
  { title: 'RegistryCredential', description: 'Credentials for one registry in one namespace, without the password' },
)
export type RegistryCredential = t.Static<typeof RegistryCredential>

export const RegistryCredentialInput = t.Object(
  {
    server: t.String({ maxLength: 300, description: '`<scheme>://<hostname>[:<port>]`, scheme http or https' }),
    username: t.String({ minLength: 1, maxLength: 256 }),
    password: t.String({ minLength: 1, maxLength: 16_384, writeOnly: true }),
    allowInsecure: t.Optional(t.Boolean({ description: 'Must be true when the server uses HTTP' })),
    replace: t.Optional(t.Boolean({ description: 'Overwrite existing credentials for the registry' })),
    resourceVersion: ExpectedVersion,
  },
  { title: 'RegistryCredentialInput' },
)
export type RegistryCredentialInput = t.Static<typeof RegistryCredentialInput>

const RegistryCredentialReference = t.Object(
  { server: t.String({ maxLength: 300 }) },
  { title: 'RegistryCredentialReference' },
)

const path = `${inNamespace}/secrets/registrycredentials` as const
const params = { namespace: 'svc-default' }
const example = {
  server: 'https://ghcr.io',
  name: 'ghcr.io',
  username: 'ci-bot',
  allowInsecure: false,
  createdAt: '2026-11-15T09:00:00Z',
  updatedAt: '2026-11-15T09:00:00Z',
  updatedBy: 'admin',
  resourceVersion: '7',
}

const operation = operationsOf({ noun: 'registry-credentials', allow: 'admin', accounts: 'registrycredentials' })

export const listRegistryCredentials = listOperation({
  id: 'listRegistryCredentials',
  noun: 'registry-credentials',
  path,
  allow: 'admin',
  accounts: 'registrycredentials',
  summary: 'List the registry credentials of a namespace',
  item: RegistryCredential,
  refuses: ['NotFound'],
  example: { params, item: example },
})

export const addRegistryCredential = operation({
  id: 'addRegistryCredential',
  method: 'POST',
  path: `${path}/add`,
  status: 201,
  also: { 200: 'Credentials replaced' },
  summary: 'Store credentials for a registry',
  involves: 'body.server',
  past: 'stored credentials for {name}',
  tells: ['username', 'allowInsecure', 'replace'],
  description:
    'One set per registry (`name`) and namespace. HTTP requires `allowInsecure`; to overwrite requires `replace`.',
  body: RegistryCredentialInput,
  response: RegistryCredential,
  refuses: ['NotFound', 'AlreadyExists', 'Conflict', 'Invalid'],
  example: {
    params,
    body: { server: 'https://ghcr.io', username: 'ci-bot', password: 'a-secret' },
    response: example,
  },
})

export const removeRegistryCredential = operation({
  id: 'removeRegistryCredential',
  method: 'DELETE',
  path: `${path}/remove`,
  summary: 'Remove the credentials for a registry',
  involves: 'body.server',
  past: 'removed credentials for {name}',
  body: RegistryCredentialReference,
  response: Status,
  refuses: ['NotFound', 'Conflict', 'Invalid'],
  example: {
    params,
    body: { server: 'https://ghcr.io' },
    response: success('Registry credential https://ghcr.io removed from svc-default', {
      name: 'https://ghcr.io',
      kind: 'registrycredentials',
    }),
  },
})
