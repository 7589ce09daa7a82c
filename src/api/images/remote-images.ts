// Images of the configured remotes, and how to pull them.
import { inNamespace, MadeListQuery, operationsOf } from '../operation.ts'
import { PullInput, pulledExample, RemoteItem, RemoteItems } from './image-operations.ts'
import { Image } from './images.ts'

const operation = operationsOf({ noun: 'remote-images' })
const path = `${inNamespace}/remoteimages` as const
const params = { namespace: 'svc-default', remoteimage: 'sonoma' }
const item: RemoteItem = { name: 'sonoma', size: '12G', type: 'arm64' }

export const listRemoteImages = operation({
  id: 'listRemoteImages',
  method: 'GET',
  path,
  allow: 'dev',
  summary: 'List the images that can be pulled',
  description: 'From the remotes in config.json. `unavailable` lists remotes that did not answer.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: RemoteItem,
  response: RemoteItems,
  refuses: ['NotFound', 'ServiceUnavailable'],
  example: { params: { namespace: 'svc-default' }, response: { items: [item] } },
})

export const pullRemoteImage = operation({
  id: 'pullRemoteImage',
  method: 'POST',
  path: `${path}/{remoteimage}/pull`,
  allow: 'dev',
  status: 202,
  summary: 'Pull an image from a remote',
  description:
    'The image is Updating and becomes Ready or Failed, also if the server ' +
    'restarts. Delete it to cancel the pull. `remoteimage` may be a reference to an image in a registry, ' +
    '`HOST/REPOSITORY[:TAG|@DIGEST]`, which is pulled with the credentials of the namespace.',
  involves: 'answer.name',
  involvesKind: 'images',
  past: 'started pulling image {name}',
  body: PullInput,
  bodyIsOptional: true,
  response: Image,
  refuses: ['NotFound', 'AlreadyExists', 'Invalid', 'Conflict', 'ServiceUnavailable'],
  example: { params, body: { name: 'mine' }, response: { ...pulledExample, type: 'arm64' } },
})
