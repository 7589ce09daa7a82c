// Images of the configured remotes, and how to pull them.
import { inNamespace } from '../operation.ts'
import { pulledExample, remoteListing, remotePull } from './image-operations.ts'
import { Image } from './images.ts'

const noun = 'remote-images'
const path = `${inNamespace}/remoteimages` as const
const params = { namespace: 'svc-default' }

export const listRemoteImages = remoteListing({
  id: 'listRemoteImages',
  noun,
  path,
  summary: 'List the images that can be pulled',
  example: { params, response: { items: [{ name: 'sonoma', size: '12G', type: 'arm64' }] } },
})

export const pullRemoteImage = remotePull({
  id: 'pullRemoteImage',
  noun,
  path: `${path}/{remoteimage}/pull`,
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
