// svc3 image

import { ApiError } from '../../../api/errors.ts'
import { builtInImages } from '../../../api/images/built-in-images.ts'
import {
  addDemoImage,
  generateImage,
  type Image,
  listImages,
  protectImage,
  restoreImage,
} from '../../../api/images/images.ts'
import { listNodes } from '../../../api/nodes/nodes.ts'
import { listPools } from '../../../api/vms/pools.ts'
import { listVmConfigs } from '../../../api/vms/vm-configs.ts'
import type { Client } from '../../../client/client.ts'
import { bytesAddedBy, lineageOf } from '../../../client/image-lineage.ts'
import { defined } from '../../../platform/defined.ts'
import { diskSizeRule, parseDiskSize, sizeText } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { Failure, UsageError } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import type { Field } from '../../output/record.ts'
import { changeCommand, listCommand, printRecord } from '../../record-commands.ts'
import { downloadFile } from './download-file.ts'
import { columns, copyCommand, deleteImages, describeCommand, fields, imageKind } from './kind.ts'
import { bootedBy, checkName, described, named, saved } from './options.ts'
import { uploadFile } from './upload-file.ts'

/** Information from other records. */
interface RelatedRecords {
  readonly lineage: readonly string[]
  readonly configs: readonly string[]
  readonly pools: readonly string[]
}

type ImageView = Image & { readonly related: RelatedRecords }

const maxNamed = 10

const shownFields: readonly Field<ImageView>[] = [
  ...fields,
  { label: 'Configurations', value: ({ related }) => namedFew(related.configs) },
  { label: 'Pools', value: ({ related }) => namedFew(related.pools) },
  { label: 'Lineage', value: ({ related }) => related.lineage },
]

const namedFew = (names: readonly string[]): string[] =>
  names.length > maxNamed ? [...names.slice(0, maxNamed), `and ${names.length - maxNamed} more`] : [...names]

/** One line per image, indented below its parent: `  xcode (adds 3.4 GiB)`. */
function lineageLines(image: Image, images: readonly Image[]): string[] {
  const { rows, more } = lineageOf(image, images)
  if (rows.length === 1) return []
  const lines = rows.map(({ name, image: found, depth, isSelf }) => {
    const bytes = found && bytesAddedBy(found)
    const notes = [
      ...(isSelf ? ['this image'] : []),
      ...(found ? [] : ['not in the cluster']),
      ...(bytes === undefined ? [] : [`adds ${sizeText(bytes)}`]),
    ]
    return `${'  '.repeat(depth)}${name}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`
  })
  return more === 0 ? lines : [...lines, `and ${more} more`]
}

async function related(client: Client, namespace: string, image: Image, signal: AbortSignal): Promise<RelatedRecords> {
  const params = { namespace }
  const [images, configs, pools] = await Promise.all([
    client.listAll(listImages, { params, signal }),
    client.listAll(listVmConfigs, { params, query: { fieldSelector: `image=${image.name}` }, signal }),
    client.listAll(listPools, { params, signal }),
  ])
  const using = new Set(configs.map(({ name }) => name))
  return {
    lineage: lineageLines(image, images),
    configs: [...using],
    pools: pools.flatMap(({ name, config }) => (using.has(config) ? [name] : [])),
  }
}

const show = defineCommand({
  description:
    'With what it was made from, what was made from it, and how much each adds; with the VMs of all namespaces that you have access to, and ' +
    'the configurations and pools of this namespace that use it.',
  arguments: { image: { value: 'IMAGE', description: 'name of the image', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 image show sonoma', does: 'Show everything about an image' }],
  async run(context, { args: { image: name } }) {
    const { client, namespace } = await context.connect()
    const { signal } = context
    const image = await client.call(imageKind.get, { params: { namespace, image: name }, signal })
    // Programs get the record as the API returns it.
    if (context.isData) return printRecord(context, image, fields)
    return printRecord(context, { ...image, related: await related(client, namespace, image, signal) }, shownFields)
  },
})

const generate = changeCommand({
  description: 'Creates an empty disk for Intel-based VMs, to install a system on. Takes no disk space.',
  arguments: {
    name: { value: 'NAME', description: 'name of the image', required: true },
    size: { value: 'SIZE', description: 'size, for example 512M, 120G or 1T', required: true },
  },
  options: { ...bootedBy, ...described },
  examples: [
    { line: 'svc3 image generate empty 120G', does: 'Create an empty disk of 120 GiB' },
    { line: 'svc3 image generate empty 120G --firmware uefi', does: 'Boot it with UEFI' },
    { line: 'svc3 image generate sonoma 120G --os macos', does: 'Create a disk to install macOS on from an ISO' },
  ],
  change: generateImage,
  body: ({ args: { name, size }, options: { description, firmware, os } }) => {
    if (parseDiskSize(size) === undefined) throw new UsageError(`Invalid size "${size}": use ${diskSizeRule}`)
    return { name: checkName(name, 'image'), size, ...defined({ firmware, os, description }) }
  },
  done: ({ size }, name) => `Image ${name} created: an empty disk of ${size}.`,
})

const demo = defineCommand({
  description:
    'tiny is a Linux to try things with; small also has bash, scp, sftp, rsync, curl and git, for CI jobs. In both: user admin, ' +
    'password admin. Nodes with QEMU on Debian build them from Debian packages at first use.',
  arguments: {
    image: { value: 'IMAGE', description: 'tiny (default) or small', choices: builtInImages },
  },
  options: {
    type: {
      type: 'choice',
      choices: ['amd64', 'arm64'],
      defaultText: 'those of the nodes',
      description: 'Architecture of the image',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 image demo', does: 'tiny, for the architectures of the nodes' },
    { line: 'svc3 image demo small --type arm64', does: 'small, only for arm64' },
  ],
  async run(context, { args, options: { type } }) {
    const { image = 'tiny' } = args
    const { client, namespace, sameTargetFlags } = await context.connect()
    const { signal } = context
    const nodes = type === undefined ? await client.listAll(listNodes, { params: { namespace }, signal }) : []
    const types = type === undefined ? [...new Set(nodes.map(({ architecture }) => architecture))].sort() : [type]
    if (types.length === 0) throw new Failure(`No nodes in ${namespace}`, 'Join a node first: run svc3 node join-token')
    const all = await client.listAll(listImages, { params: { namespace }, signal })
    const present = types.flatMap((each) => all.find(({ name }) => name === `${image}-${each}`) ?? [])
    for (const { name } of present) context.note(`Image ${name} already exists`)
    if (present.length === types.length) {
      await context.done('Nothing to add.', present)
      return 0
    }
    const images: Image[] = []
    const refusals: ApiError[] = []
    for (const each of types.filter((each) => !present.some(({ name }) => name === `${image}-${each}`))) {
      try {
        images.push(await client.call(addDemoImage, { params: { namespace }, body: { type: each, image }, signal }))
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'Conflict')) throw error
        refusals.push(error)
      }
    }
    const [refusal] = refusals
    if (refusal && images.length === 0) throw refusal
    for (const { message } of refusals) context.note(message)
    await context.done(`Added ${images.map(({ name }) => `image ${name}`).join(' and ')}.`, [...present, ...images])
    context.note(`Deploy a VM: svc3 vm deploy --image ${images[0]?.name}${sameTargetFlags}`)
  },
})

const upload = defineCommand({
  description:
    'Uploads a raw or qcow2 disk, also compressed with gzip, zstd or xz. If interrupted, run the same command to resume.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...bootedBy, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image upload disk.qcow2', does: 'Use the name of the file' },
    { line: 'svc3 image upload disk.qcow2 --name sonoma --type arm64', does: 'Choose another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type, firmware, os } }) =>
    uploadFile(context, imageKind, { file, name, description, type, firmware, os }),
})

const download = defineCommand({
  description: 'Downloads the disk, raw or as qcow2. If interrupted, run the same command to resume.',
  arguments: { name: { value: 'NAME', description: 'image to download', names: 'images', required: true } },
  options: {
    ...saved,
    format: { type: 'choice', choices: ['raw', 'qcow2'], default: 'raw', description: 'Format of the file' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 image download sonoma', does: 'Save to the current folder' },
    { line: 'svc3 image download sonoma -f /tmp/disk.raw', does: 'Save to another path' },
    { line: 'svc3 image download sonoma --format qcow2', does: 'Save as sonoma.qcow2, without empty blocks' },
  ],
  run: (context, { args: { name }, options: { file, force, format } }) =>
    downloadFile(context, imageKind, { name, file, force, format }),
})

const image = (description: string) =>
  ({ image: { value: 'NAME', description, names: 'images', required: true } }) as const

const protect = changeCommand({
  description:
    'Only administrators delete a protected image or commit to it; every user deploys and copies it. Built-in images are protected. ' +
    'For administrators.',
  arguments: image('image to protect'),
  options: { off: { type: 'boolean', description: 'Remove the protection' } },
  examples: [
    { line: 'svc3 image protect sonoma', does: 'Keep an image from being changed or deleted' },
    { line: 'svc3 image protect sonoma --off', does: 'Let its owner delete it again' },
  ],
  change: protectImage,
  body: ({ options: { off } }) => ({ protected: !off }),
  done: (_, name, { options: { off } }) => `Image ${name} is ${off ? 'no longer ' : ''}protected.`,
})

const restore = changeCommand({
  description:
    'Makes an earlier version the next one; svc3 image show lists them. New VMs are deployed from it, and existing VMs do not ' +
    'change. The content of the 5 versions before the current one is kept. Only administrators restore a protected image.',
  arguments: image('image to restore'),
  options: {
    version: {
      type: 'integer',
      value: 'VERSION',
      min: 1,
      max: 1_000_000_000,
      required: true,
      description: 'Version to restore',
    },
  },
  examples: [{ line: 'svc3 image restore sonoma --version 2', does: 'Undo the commits since version 2' }],
  change: restoreImage,
  body: ({ options: { version } }) => ({ version }),
  done: ({ version: current }, name, { options: { version } }) =>
    `Image ${name} is at version ${current}, which is version ${version} again.`,
})

const architectures = { type: 'choice', choices: ['amd64', 'arm64'] } as const

const list = listCommand({
  description: 'Images belong to the cluster and are the same in every namespace.',
  examples: [
    { line: 'svc3 image list', does: 'List all images' },
    { line: 'svc3 image list tiny-arm64 -o wide', does: 'Show one image with its source' },
  ],
  list: imageKind.list,
  filters: {
    type: { ...architectures, description: 'Only images of this architecture' },
    arch: { ...architectures, description: 'The same as --type' },
  },
  isMeant: (image, { type, arch }) => [type ?? image.type, arch ?? image.type].every((each) => each === image.type),
  // New columns come last, because scripts rely on the positions of the others.
  columns: [
    ...columns,
    { header: 'OS', wide: true, cell: (image) => image.os },
    { header: 'PROTECTED', wide: true, cell: (image) => (image.protected ? 'yes' : 'no') },
  ],
  scope: 'cluster',
  // The progress is not in the column STATE, because scripts compare that.
  notes: (context, images) => {
    for (const { name, progress, errorMessage } of images)
      if (progress)
        context.note(
          visible(`image ${name}: ${progress.percent} %${errorMessage === undefined ? '' : `; ${errorMessage}`}`),
        )
  },
})

export const commands = {
  list,
  show,
  copy: copyCommand(imageKind),
  generate,
  demo,
  upload,
  download,
  'set-description': describeCommand(imageKind),
  protect,
  restore,
  delete: deleteImages(imageKind),
}
