// The request of a deployment, in the form that public clients send.
import * as t from 'typebox'
import { Flag } from '../records.ts'
import { vmShapeFields } from './vm-shape.ts'

/** Values become text. Some clients send numbers. */
const Metadata = t.Record(t.String({ maxLength: 128 }), t.Union([t.String(), t.Number(), t.Boolean()]))
const Labels = t.Record(t.String({ maxLength: 128 }), t.String({ maxLength: 256 }))

export const imageStarts = ['whole', 'lazy'] as const
export type ImageStart = (typeof imageStarts)[number]

export const VmDeployment = t.Object(
  {
    image: t.Optional(t.String({ maxLength: 512, description: 'An image, or for arm64 an OCI reference' })),
    vmConfig: t.Optional(t.String({ maxLength: 64, description: 'A VM configuration; the other fields override it' })),
    name: t.Optional(t.String({ maxLength: 256 })),
    shouldGenerateName: t.Optional(t.Boolean({ description: '`name` is a prefix' })),
    ...vmShapeFields,
    reservedPorts: t.Optional(
      t.String({ maxLength: 2048, description: '`NODE:VM[,NODE:VM]`, each may end in `/udp`' }),
    ),
    customVMMetadata: t.Optional(Metadata),
    customMetadata: t.Optional(Metadata),
    metadata: t.Optional(Metadata),
    vm_metadata: t.Optional(
      t.Object({
        items: t.Optional(
          t.Array(t.Object({ key: t.String(), value: t.Union([t.String(), t.Number(), t.Boolean()]) })),
        ),
      }),
    ),
    userdata: t.Optional(t.String({ maxLength: 350_000, writeOnly: true, description: 'First-boot script, base64' })),
    imageStart: t.Optional(
      t.Enum(imageStarts, {
        description: '`lazy`: start before all of the image is on the node, where it can. Default: set by the server',
      }),
    ),
    cold: Flag('Boot from the disk, not from the saved memory of the image'),
    priority: t.Optional(
      t.Integer({
        minimum: -1_000,
        maximum: 1_000,
        description: 'Among your own VMs that wait: higher first. Default: 0',
      }),
    ),
    noWarm: Flag('Take no warm VM of a pool'),
    labels: t.Optional(Labels),
    ttl: t.Optional(t.String({ maxLength: 64, description: 'Time until the VM is deleted, such as `2h`' })),
    timeout: t.Optional(t.Number({ minimum: 0, maximum: 100_000, description: 'Minutes. Default: 10' })),
  },
  { title: 'VmDeployment' },
)
export type VmDeployment = t.Static<typeof VmDeployment>
