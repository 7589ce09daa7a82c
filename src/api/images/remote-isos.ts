// ISOs of the configured remotes, and how to pull them.
import { inNamespace } from '../operation.ts'
import { pulledExample, remoteListing, remotePull } from './image-operations.ts'
import { Iso } from './isos.ts'

const noun = 'remote-isos'
const path = `${inNamespace}/remoteisos` as const
const params = { namespace: 'svc-default' }

export const listRemoteIsos = remoteListing({
  id: 'listRemoteIsos',
  noun,
  path,
  summary: 'List the ISOs that can be pulled',
  example: { params, response: { items: [{ name: 'ventura.iso', size: '12G', type: 'amd64' }] } },
})

export const pullRemoteIso = remotePull({
  id: 'pullRemoteIso',
  noun,
  path: `${path}/{remoteiso}/pull`,
  summary: 'Pull an ISO from a remote',
  description:
    'The ISO is Updating and becomes Ready or Failed, also if the server restarts. Delete it to cancel the pull.',
  involvesKind: 'isos',
  past: 'started pulling ISO {name}',
  response: Iso,
  example: {
    params: { ...params, remoteiso: 'ventura.iso' },
    body: { name: 'mine' },
    response: { ...pulledExample, type: 'amd64' },
  },
})
