// Resumable uploads of images and ISOs. A client begins one with the size of the file, sends bytes from an offset, and
// finishes it. Only its owner sees an upload, and it expires after a day without progress.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { inNamespace, operationsOf } from '../operation.ts'
import { Architecture, Timestamp } from '../records.ts'
import { Description, firmwares, guestSystems, Name } from './image-operations.ts'
import { Image } from './images.ts'

export const Upload = t.Object(
  {
    id: t.String(),
    kind: t.Enum(['image', 'iso']),
    name: t.String(),
    size: t.Integer({ description: 'File size in bytes' }),
    offset: t.Integer({ description: 'Received bytes; continue from here' }),
    expiresAt: Timestamp,
  },
  { title: 'Upload' },
)
export type Upload = t.Static<typeof Upload>

const UploadInput = t.Object(
  {
    kind: t.Enum(['image', 'iso']),
    name: Name,
    size: t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'File size in bytes' }),
    key: t.String({ minLength: 1, maxLength: 256, description: 'Key of the file; another file has another key' }),
    description: t.Optional(Description),
    type: t.Optional(Architecture),
    firmware: t.Optional(t.Enum(firmwares)),
    os: t.Optional(t.Enum(guestSystems, { description: 'Guest system of an image' })),
  },
  { title: 'UploadInput' },
)
export type UploadInput = t.Static<typeof UploadInput>

const operation = operationsOf({ noun: 'uploads', allow: 'dev', response: Upload })
const path = `${inNamespace}/uploads` as const
const params = { namespace: 'svc-default', upload: '5f1c0e2a9b7d4c3e8f6a1b2c3d4e5f60' }
const example: Upload = {
  id: params.upload,
  kind: 'image',
  name: 'sonoma',
  size: 512,
  offset: 0,
  expiresAt: '2026-11-16T09:00:00Z',
}

export const beginUpload = operation({
  id: 'beginUpload',
  method: 'POST',
  path,
  status: 201,
  also: { 200: 'The upload exists: continue from its `offset`' },
  summary: 'Start a resumable upload',
  involves: 'body.name',
  past: 'started uploading {name}',
  isIdempotent: true,
  body: UploadInput,
  refuses: ['AlreadyExists', 'Invalid', 'RequestEntityTooLarge'],
  example: {
    params: { namespace: 'svc-default' },
    body: { kind: 'image', name: 'sonoma', size: 512, key: 'disk.img 512 1763200000' },
    response: example,
  },
})

export const getUpload = operation({
  id: 'getUpload',
  method: 'GET',
  path: `${path}/{upload}`,
  summary: 'Show the progress of an upload',
  isDerived: true,
  example: { params, response: example },
})

export const continueUpload = operation({
  id: 'continueUpload',
  method: 'PUT',
  path: `${path}/{upload}`,
  summary: 'Send bytes of an upload from an offset',
  description: 'The rest or a part of it. Received bytes are kept if the connection ends early.',
  involves: 'params.upload',
  past: 'continued upload {name}',
  query: t.Object({ offset: t.Optional(t.Integer({ minimum: 0, description: 'Default: 0' })) }),
  isUpload: 'part',
  refuses: ['Conflict', 'RequestEntityTooLarge', 'ServiceUnavailable'],
  example: { params, response: { ...example, offset: 512 } },
})

export const finishUpload = operation({
  id: 'finishUpload',
  method: 'POST',
  path: `${path}/{upload}/finish`,
  status: 201,
  summary: 'Create an image or ISO from a complete upload',
  involves: 'answer.name',
  // ISOs have no guest system.
  involvesKind: (answer) => ((answer as Image).os === undefined ? 'isos' : 'images'),
  past: 'uploaded {kind} {name}',
  body: t.Object(
    {
      sha256: t.Optional(
        t.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the whole file, to verify it' }),
      ),
    },
    { title: 'UploadEnd' },
  ),
  bodyIsOptional: true,
  response: Image,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict', 'RequestEntityTooLarge', 'ServiceUnavailable'],
  example: {
    params,
    body: { sha256: '076a27c79e5ace2a3d47f9dd2e83e4ff6ea8872b3c2218f66c92b89b55f36560' },
    response: {
      name: 'sonoma',
      description: '',
      type: 'arm64',
      os: 'macos',
      size: '90G',
      state: 'Ready',
      owner: 'me@example.com',
      source: 'upload',
      sourceType: 'userUpload',
      usedBy: [],
      lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
      resourceVersion: '7',
    },
  },
})

export const abandonUpload = operation({
  id: 'abandonUpload',
  method: 'DELETE',
  path: `${path}/{upload}`,
  summary: 'Cancel an upload',
  involves: 'params.upload',
  past: 'canceled upload {name}',
  response: Status,
  example: {
    params,
    response: success('upload "5f1c0e2a9b7d4c3e8f6a1b2c3d4e5f60" deleted', { name: params.upload, kind: 'uploads' }),
  },
})
