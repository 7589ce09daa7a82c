// ISOs of the configured remotes, and how to pull them.
import { inNamespace, MadeListQuery, operationsOf } from '../operation.ts'
import { PullInput, pulledExample, RemoteItem, RemoteItems } from './image-operations.ts'
import { Iso } from './isos.ts'

const operation = operationsOf({ noun: 'remote-isos' })
const path = `${inNamespace}/remoteisos` as const
const params = { namespace: 'svc-default', remoteiso: 'ventura.iso' }
const item: RemoteItem = { name: 'ventura.iso', size: '12G', type: 'amd64' }

export const listRemoteIsos = operation({
  id: 'listRemoteIsos',
  method: 'GET',
  path,
  allow: 'dev',
  summary: 'List the ISOs that can be pulled',
  description: 'From the remotes in config.json. `unavailable` lists remotes that did not answer.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: RemoteItem,
  response: RemoteItems,
  refuses: ['NotFound', 'ServiceUnavailable'],
  example: { params: { namespace: 'svc-default' }, response: { items: [item] } },
})

export const pullRemoteIso = operation({
  id: 'pullRemoteIso',
  method: 'POST',
  path: `${path}/{remoteiso}/pull`,
  allow: 'dev',
  status: 202,
  summary: 'Pull an ISO from a remote',
  description:
    'The ISO is Updating and becomes Ready or Failed, also if the server ' + 'restarts. Delete it to cancel the pull.',
  involves: 'answer.name',
  involvesKind: 'isos',
  past: 'started pulling ISO {name}',
  body: PullInput,
  bodyIsOptional: true,
  response: Iso,
  refuses: ['NotFound', 'AlreadyExists', 'Invalid', 'Conflict', 'ServiceUnavailable'],
  example: { params, body: { name: 'mine' }, response: { ...pulledExample, type: 'amd64' } },
})
