// Images and ISOs of the configured remotes, and how to pull them.
import { inNamespace, MadeListQuery, operationsOf } from '../operation.ts'
import { PullInput, pulledExample, RemoteItem, RemoteItems } from './image-operations.ts'
import { Image } from './images.ts'
import { Iso } from './isos.ts'

const listing = operationsOf({
  method: 'GET',
  allow: 'dev',
  description: 'From the remotes in config.json. `unavailable` lists remotes that did not answer.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: RemoteItem,
  response: RemoteItems,
  refuses: ['ServiceUnavailable'],
})
const pull = operationsOf({
  method: 'POST',
  allow: 'dev',
  status: 202,
  involves: 'answer.name',
  body: PullInput,
  bodyIsOptional: true,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict', 'ServiceUnavailable'],
})
const imagesPath = `${inNamespace}/remoteimages` as const
const isosPath = `${inNamespace}/remoteisos` as const
const params = { namespace: 'svc-default' }

export const listRemoteImages = listing({
  id: 'listRemoteImages',
  noun: 'remote-images',
  path: imagesPath,
  summary: 'List the images that can be pulled',
  example: { params, response: { items: [{ name: 'sonoma', size: '12G', type: 'arm64' }] } },
})

export const pullRemoteImage = pull({
  id: 'pullRemoteImage',
  noun: 'remote-images',
  path: `${imagesPath}/{remoteimage}/pull`,
  summary: 'Pull an image from a remote',
  description:
    'The image is Updating and becomes Ready or Failed, also if the server ' +
    'restarts. Delete it to cancel the pull. `remoteimage` may be a reference to an image in a registry, ' +
    '`HOST/REPOSITORY[:TAG|@DIGEST]`, which is pulled with the credentials of the namespace.',
  involvesKind: 'images',
  past: 'started pulling image {name}',
  response: Image,
  example: {
    params: { ...params, remoteimage: 'sonoma' },
    body: { name: 'mine' },
    response: { ...pulledExample, type: 'arm64' },
  },
})

export const listRemoteIsos = listing({
  id: 'listRemoteIsos',
  noun: 'remote-isos',
  path: isosPath,
  summary: 'List the ISOs that can be pulled',
  example: { params, response: { items: [{ name: 'ventura.iso', size: '12G', type: 'amd64' }] } },
})

export const pullRemoteIso = pull({
  id: 'pullRemoteIso',
  noun: 'remote-isos',
  path: `${isosPath}/{remoteiso}/pull`,
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
