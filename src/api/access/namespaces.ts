// Namespaces: the scope of most other resources.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { base, inNamespace, listOperation, operationsOf } from '../operation.ts'
import { ResourceVersion, Timestamp } from '../records.ts'

export const Namespace = t.Object(
  {
    name: t.String(),
    customPods: t.Boolean({ description: 'Reserved for other workloads; no VMs' }),
    createdAt: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'Namespace' },
)
export type Namespace = t.Static<typeof Namespace>

const NamespaceInput = t.Object(
  {
    name: t.String({
      maxLength: 300,
      description: 'Starts with `svc-`; lowercase letters, digits, dashes; at most 63',
    }),
    enableCustomPods: t.Optional(t.Boolean({ description: 'Reserve it for other workloads; no VMs' })),
  },
  { title: 'NamespaceInput' },
)

const example = {
  name: 'svc-default',
  customPods: false,
  createdAt: '2026-11-15T09:00:00Z',
  resourceVersion: '1',
}

const operation = operationsOf({ noun: 'namespaces' })

export const listNamespaces = listOperation({
  id: 'listNamespaces',
  noun: 'namespaces',
  path: `${base}/namespaces`,
  allow: 'user',
  summary: 'List the namespaces that the caller may use',
  item: Namespace,
  example: { item: example },
})

export const getNamespace = operation({
  id: 'getNamespace',
  method: 'GET',
  path: inNamespace,
  allow: 'dev',
  summary: 'Show a namespace',
  response: Namespace,
  example: { params: { namespace: 'svc-default' }, response: example },
})

export const createNamespace = operation({
  id: 'createNamespace',
  method: 'POST',
  path: `${base}/namespaces`,
  allow: 'admin',
  status: 201,
  summary: 'Create a namespace',
  involves: 'body.name',
  past: 'created namespace {name}',
  body: NamespaceInput,
  response: Namespace,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    body: { name: 'svc-ios' },
    response: { name: 'svc-ios', customPods: false, createdAt: '2026-11-15T09:00:00Z', resourceVersion: '9' },
  },
})

export const deleteNamespace = operation({
  id: 'deleteNamespace',
  method: 'DELETE',
  path: inNamespace,
  allow: 'admin',
  summary: 'Delete a namespace with its credentials, service accounts and role bindings',
  involves: 'params.namespace',
  past: 'deleted namespace {name}',
  description: 'Refused while it has VMs or nodes, and for the default namespace.',
  response: Status,
  refuses: ['Conflict', 'Invalid'],
  example: {
    params: { namespace: 'svc-ios' },
    response: success('Namespace svc-ios deleted', { name: 'svc-ios', kind: 'namespaces' }),
  },
})
