// Namespaces on the wire: the scope of every other resource.
import * as t from 'typebox'
import { base, inNamespace, listOperation, operation } from './operation.ts'
import { ResourceVersion, Timestamp } from './records.ts'

export const Namespace = t.Object(
  {
    name: t.String(),
    customPods: t.Boolean({ description: 'Kept for other workloads: VMs are refused here' }),
    createdAt: Timestamp,
    resourceVersion: ResourceVersion,
  },
  { title: 'Namespace' },
)
export type Namespace = t.Static<typeof Namespace>

const example = {
  name: 'svc-default',
  customPods: false,
  createdAt: '2026-11-15T09:00:00Z',
  resourceVersion: '1',
}

export const listNamespaces = listOperation({
  id: 'listNamespaces',
  noun: 'namespaces',
  path: `${base}/namespaces`,
  allow: 'user',
  summary: 'List the namespaces that the caller may use',
  item: Namespace,
  refuses: [],
  example: { item: example },
})

export const getNamespace = operation({
  id: 'getNamespace',
  noun: 'namespaces',
  method: 'GET',
  path: inNamespace,
  allow: 'dev',
  status: 200,
  summary: 'Show one namespace',
  response: Namespace,
  refuses: ['NotFound'],
  example: { params: { namespace: 'svc-default' }, response: example },
})
