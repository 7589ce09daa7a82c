// Images. They belong to the cluster, so every namespace has the same ones.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, listOperation, operationsOf } from '../operation.ts'
import { Architecture, ExpectedVersion } from '../records.ts'
import { builtInImages } from './built-in-images.ts'
import {
  CopyInput,
  Description,
  DescriptionInput,
  firmwares,
  guestSystems,
  imageFields,
  Name,
  uploadFields,
} from './image-operations.ts'

export const Image = t.Object(imageFields, { title: 'Image' })
export type Image = t.Static<typeof Image>

const noun = 'images'
const operation = operationsOf({ noun })
const change = operationsOf({ noun, allow: 'dev', method: 'POST', response: Image })
const path = `${inNamespace}/images` as const
const params = { namespace: 'svc-default', image: 'tiny-arm64' }
const example = {
  name: 'tiny-arm64',
  description: 'A tiny Linux to try things with',
  type: 'arm64',
  os: 'linux',
  size: '1G',
  state: 'Ready',
  owner: 'svc3',
  source: 'built-in',
  sourceType: 'local',
  usedBy: ['svc-default/vm-cznfv'],
  protected: true,
  version: 1,
  versions: [{ version: 1, createdAt: '2026-11-15T09:00:00Z' }],
  lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
  resourceVersion: '7',
}

const UploadQuery = t.Object({
  ...uploadFields,
  firmware: t.Optional(t.String({ maxLength: 16, description: 'Firmware: `bios` or `uefi`' })),
  os: t.Optional(t.String({ maxLength: 16, description: 'Guest system: `macos`, `linux` or `other`' })),
})

export const listImages = listOperation({
  id: 'listImages',
  noun,
  path,
  allow: 'dev',
  summary: 'List the images of the cluster',
  item: Image,
  example: { params: { namespace: 'svc-default' }, item: example },
})

export const getImage = operation({
  id: 'getImage',
  method: 'GET',
  path: `${path}/{image}`,
  allow: 'dev',
  summary: 'Show an image',
  isDerived: true,
  response: Image,
  example: { params, response: example },
})

export const generateImage = change({
  id: 'generateImage',
  path,
  status: 202,
  summary: 'Create an empty amd64 image',
  involves: 'body.name',
  past: 'generated image {name}',
  tells: ['size'],
  body: t.Object(
    {
      name: Name,
      size: t.String({ minLength: 1, maxLength: 16, description: 'Such as `120G`' }),
      firmware: t.Optional(t.Enum(firmwares, { description: 'Firmware. Default: `uefi` for macOS, otherwise `bios`' })),
      os: t.Optional(t.Enum(guestSystems, { description: 'Guest system. Default: `other`' })),
      description: t.Optional(Description),
    },
    { title: 'ImageGeneration' },
  ),
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params: { namespace: 'svc-default' },
    body: { name: 'empty', size: '120G' },
    response: {
      ...example,
      name: 'empty',
      size: '120G',
      type: 'amd64',
      os: 'other',
      sourceType: 'generated',
      usedBy: [],
      protected: false,
    },
  },
})

export const addDemoImage = change({
  id: 'addDemoImage',
  path: `${path}/demo`,
  status: 201,
  also: { 200: 'The image exists already' },
  summary: 'Add a built-in Linux image',
  description:
    'Nodes with QEMU build it from Debian packages at first use. Refused if no such node has the architecture. An ' +
    'image that exists already is returned unchanged.',
  involves: 'answer.name',
  past: 'added demo image {name}',
  body: t.Object(
    {
      type: Architecture,
      image: t.Optional(
        t.Enum(builtInImages, {
          description:
            'tiny (default): to try things with. small: for CI jobs, with bash, scp, sftp, rsync, curl and git',
        }),
      ),
    },
    { title: 'DemoImage' },
  ),
  refuses: ['AlreadyExists', 'Conflict'],
  example: { params: { namespace: 'svc-default' }, body: { type: 'arm64' }, response: example },
})

export const copyImage = change({
  id: 'copyImage',
  path: `${path}/{image}/copy`,
  status: 202,
  summary: 'Copy an image',
  involves: 'answer.name',
  past: 'copied image {image} to {name}',
  body: CopyInput,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params,
    body: { name: 'another' },
    response: {
      ...example,
      name: 'another',
      usedBy: [],
      protected: false,
      parent: { image: 'tiny-arm64', version: 1 },
    },
  },
})

export const describeImage = change({
  id: 'describeImage',
  path: `${path}/{image}/description`,
  summary: 'Change the description of an image',
  description:
    'For its owner, people of the namespace it was made in, and administrators; of a protected image only for ' +
    'administrators.',
  involves: 'params.image',
  past: 'changed the description of image {name}',
  tells: ['description'],
  mayRepeat: true,
  body: DescriptionInput,
  refuses: ['Forbidden', 'Conflict'],
  example: { params, body: { description: 'For releases' }, response: { ...example, description: 'For releases' } },
})

export const restoreImage = change({
  id: 'restoreImage',
  path: `${path}/{image}/restore`,
  summary: 'Restore an earlier version of an image',
  description:
    'The content of an earlier version becomes the next version; versions in between stay in the list. New VMs are deployed from it, existing ' +
    'VMs stay as they are. The content of the 5 versions before the current one is kept. For its owner, people of the namespace it was made in, and administrators; of a protected image only for administrators.',
  involves: 'params.image',
  past: 'restored version {version} of image {name}',
  body: t.Object(
    {
      version: t.Integer({ minimum: 1, description: 'One of `versions` that is `restorable`' }),
      resourceVersion: ExpectedVersion,
    },
    { title: 'ImageRestore' },
  ),
  refuses: ['Forbidden', 'Invalid', 'Conflict'],
  example: {
    params,
    body: { version: 1 },
    response: {
      ...example,
      version: 3,
      versions: [
        { version: 1, createdAt: '2026-11-15T09:00:00Z', restorable: true },
        { version: 2, createdAt: '2026-11-16T09:00:00Z', vm: 'svc-default/vm-cznfv', restorable: true },
        { version: 3, createdAt: '2026-11-17T09:00:00Z', restored: 1 },
      ],
    },
  },
})

export const protectImage = operation({
  id: 'protectImage',
  method: 'POST',
  path: `${path}/{image}/protection`,
  allow: 'admin',
  summary: 'Protect an image',
  description: 'Only administrators change or delete a protected image. Built-in images are protected.',
  involves: 'params.image',
  past: 'changed the protection of image {name}',
  tells: ['protected'],
  body: t.Object({ protected: t.Boolean(), resourceVersion: ExpectedVersion }, { title: 'ImageProtection' }),
  response: Image,
  refuses: ['Conflict'],
  example: { params, body: { protected: true }, response: example },
})

export const deleteImage = operation({
  id: 'deleteImage',
  method: 'DELETE',
  path: `${path}/{image}`,
  allow: 'dev',
  summary: 'Delete an image',
  description:
    'For its owner, people of the namespace it was made in, and administrators; a protected image only for ' +
    'administrators. Refused while VMs use it. Unused content is deleted later.',
  involves: 'params.image',
  past: 'deleted image {name}',
  response: Status,
  refuses: ['Forbidden', 'Conflict'],
  example: {
    params,
    response: success('Image tiny-arm64 deleted', { name: 'tiny-arm64', kind: 'images' }),
  },
})

export const downloadImage = operation({
  id: 'downloadImage',
  method: 'GET',
  path: `${path}/{image}/download`,
  allow: 'dev',
  also: { 206: 'The requested range' },
  summary: 'Download the disk of an image',
  description:
    'Raw, or with `format=qcow2` as a qcow2 file without holes, always of the same bytes. A range of at most 16 MiB requested ' +
    'with `Want-Content-Digest: sha-256=10` has a `Content-Digest`. A range of a raw disk has ' +
    '`svc3-next-data`: there are only zeros up to that offset.',
  query: t.Object({ format: t.Optional(t.Enum(['raw', 'qcow2'])) }),
  produces: 'application/octet-stream',
  isDownload: true,
  response: t.String(),
  refuses: ['Conflict', 'RangeNotSatisfiable'],
  example: { params, response: '' },
})

export const uploadImage = change({
  id: 'uploadImage',
  path: `${inNamespace}/upload/image`,
  status: 201,
  summary: 'Upload an image',
  description:
    'A form with the part `image` (named by its file name or the field `name`), or the ' +
    'bytes themselves with `?name=`. Raw and qcow2 disks are recognised by their content, also when they are compressed ' +
    'with gzip, zstd or xz.',
  involves: 'answer.name',
  past: 'uploaded image {name}',
  query: UploadQuery,
  isUpload: 'image',
  refuses: ['AlreadyExists', 'Invalid', 'Conflict', 'RequestEntityTooLarge'],
  example: {
    params: { namespace: 'svc-default' },
    response: { ...example, sourceType: 'userUpload', usedBy: [], protected: false },
  },
})
