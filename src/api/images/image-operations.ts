// Schemas shared by images and ISOs.
import * as t from 'typebox'
import { Continue, MadeListQuery, operationsOf } from '../operation.ts'
import { Architecture, ExpectedVersion, ResourceVersion, Timestamp } from '../records.ts'

const imageStates = ['Ready', 'Updating', 'Failed'] as const
export const firmwares = ['bios', 'uefi'] as const
/** The guest system of a disk. Intel hosts give macOS other virtual hardware than other guests. */
export const guestSystems = ['macos', 'linux', 'other'] as const
export type GuestSystem = (typeof guestSystems)[number]
const sourceTypes = ['local', 'remote', 'vm', 'generated', 'userUpload'] as const

const ImageVersion = t.Object(
  {
    version: t.Integer(),
    createdAt: Timestamp,
    checksum: t.Optional(t.String({ description: 'SHA-256 of the content' })),
    vm: t.Optional(t.String({ description: 'The VM that was saved or committed, as `namespace/name`' })),
    by: t.Optional(t.String({ description: 'Who saved or committed it, where you have access to the VM' })),
    bytesAdded: t.Optional(
      t.Integer({
        description:
          'Stored bytes that it adds to the content that it was made from; all of them if it was made from none',
      }),
    ),
    restored: t.Optional(t.Integer({ description: 'The earlier version that this one is again' })),
    restorable: t.Optional(
      t.Boolean({ description: 'The content is kept, so that the image can be restored to it; absent if not' }),
    ),
  },
  { title: 'ImageVersion' },
)

/** The fields of an image or an ISO. */
export const imageFields = {
  name: t.String(),
  description: t.String(),
  type: Architecture,
  os: t.Optional(t.Enum(guestSystems, { description: 'Guest system of an image' })),
  size: t.String({ description: 'Disk size, such as `90G`' }),
  spaceUsed: t.Optional(t.String({ description: 'Stored size, such as `412M`' })),
  state: t.Enum(imageStates),
  progress: t.Optional(t.Object({ percent: t.Integer(), bytes: t.Integer() })),
  errorMessage: t.Optional(
    t.String({
      description: 'Why it is Failed, why the last commit failed, or what an update waits for',
    }),
  ),
  warning: t.Optional(t.String({ description: 'Why the disk will not boot, by its partitions' })),
  owner: t.String({ description: 'Empty if you have no access to the namespace it was made in' }),
  source: t.String({ description: 'Empty if it is a VM in a namespace that you have no access to' }),
  sourceType: t.Enum(sourceTypes),
  sourceNamespace: t.Optional(t.String()),
  checksum: t.Optional(t.String({ description: 'SHA-256 of the content, `sha256:…`' })),
  usedBy: t.Array(t.String(), { description: 'VMs that use it, as `namespace/name`, where you have access' }),
  usedElsewhere: t.Optional(
    t.Integer({ description: 'Number of VMs that use it in namespaces that you have no access to; absent if none' }),
  ),
  protected: t.Optional(
    t.Boolean({ description: 'Of an image: only administrators delete it or commit to it. Built-in images are' }),
  ),
  version: t.Optional(t.Integer({ description: 'Version of an image; grows with every commit' })),
  versions: t.Optional(t.Array(ImageVersion, { description: 'Latest versions of an image, the current one last' })),
  parent: t.Optional(
    t.Object(
      {
        image: t.String({ description: 'Name, or `host/repository@sha256:…` of an image in a registry' }),
        version: t.Optional(t.Integer({ description: 'Version of that image' })),
        vm: t.Optional(t.String({ description: 'The VM that was saved, as `namespace/name`' })),
      },
      {
        title: 'ImageParent',
        description: 'Source: the image that was copied, or the image of the saved VM',
      },
    ),
  ),
  capture: t.Optional(
    t.Object(
      { kind: t.Enum(['save', 'commit']), vm: t.String({ description: 'VM, as `namespace/name`' }) },
      { title: 'ImageCapture', description: 'Save or commit in progress' },
    ),
  ),
  lastUpdatedTimestamp: Timestamp,
  resourceVersion: ResourceVersion,
}

export const Description = t.String({ maxLength: 1_024 })
export const Name = t.String({ minLength: 1, maxLength: 256 })

/** Query of an upload of either kind. */
export const uploadFields = {
  name: t.Optional(t.String({ maxLength: 256 })),
  description: t.Optional(t.String({ maxLength: 1_024 })),
  type: t.Optional(t.String({ maxLength: 16, description: '`arm64` or `amd64` (default)' })),
}

export const CopyInput = t.Object(
  {
    name: t.Optional(Name),
    newName: t.Optional(Name),
    description: t.Optional(Description),
  },
  { title: 'CopyInput', description: '`name` or `newName` is required. Default description: the source' },
)
export type CopyInput = t.Static<typeof CopyInput>
export const RemoteItem = t.Object(
  {
    name: t.String({ description: 'Name to pull; with the remote as prefix where the name is ambiguous' }),
    size: t.String({ description: 'Download size, such as `12G`' }),
    type: Architecture,
  },
  { title: 'RemoteItem' },
)
export type RemoteItem = t.Static<typeof RemoteItem>
export const RemoteItems = t.Object({
  items: t.Array(RemoteItem),
  unavailable: t.Optional(
    t.Array(t.Object({ remote: t.String(), message: t.String() }), { description: 'Remotes that did not answer' }),
  ),
  continue: Continue,
})
const PullInput = t.Object(
  { name: t.Optional(Name), description: t.Optional(Description) },
  { title: 'PullInput', description: 'Name and description. Default: those of the remote' },
)
export const remoteListing = operationsOf({
  method: 'GET',
  allow: 'dev',
  description: 'From the remotes in config.json. `unavailable` lists remotes that did not answer.',
  isDerived: true,
  query: MadeListQuery,
  madeOf: RemoteItem,
  response: RemoteItems,
  refuses: ['ServiceUnavailable'],
})
export const remotePull = operationsOf({
  method: 'POST',
  allow: 'dev',
  status: 202,
  involves: 'answer.name',
  body: PullInput,
  bodyIsOptional: true,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict', 'ServiceUnavailable'],
})
export const pulledExample = {
  name: 'mine',
  description: '',
  size: '12G',
  state: 'Updating',
  progress: { percent: 0, bytes: 0 },
  owner: 'me@example.com',
  source: 'lab/sonoma',
  sourceType: 'remote',
  usedBy: [],
  lastUpdatedTimestamp: '2026-11-15T09:00:00Z',
  resourceVersion: '7',
} as const

export const DescriptionInput = t.Object(
  { description: Description, resourceVersion: ExpectedVersion },
  { title: 'DescriptionInput' },
)
