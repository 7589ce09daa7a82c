// svc3 image show
import { type Image, listImages } from '../../../api/images/images.ts'
import { listPools } from '../../../api/vms/pools.ts'
import { listVmConfigs } from '../../../api/vms/vm-configs.ts'
import type { Client } from '../../../client/client.ts'
import { bytesAddedBy, lineageOf } from '../../../client/image-lineage.ts'
import { sizeText } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'
import { fields, imageKind } from './kind.ts'

/** What other records say of it. */
interface Around {
  readonly lineage: readonly string[]
  readonly configs: readonly string[]
  readonly pools: readonly string[]
}

type Shown = Image & { readonly around: Around }

const maxNamed = 10

const shownFields: readonly Field<Shown>[] = [
  ...fields,
  { label: 'Configurations', value: ({ around }) => named(around.configs) },
  { label: 'Pools', value: ({ around }) => named(around.pools) },
  { label: 'Lineage', value: ({ around }) => around.lineage },
]

const named = (names: readonly string[]): string[] =>
  names.length > maxNamed ? [...names.slice(0, maxNamed), `and ${names.length - maxNamed} more`] : [...names]

/** A line each, below what it was made from: `  xcode  adds 3.4 GiB`. */
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

async function around(client: Client, namespace: string, image: Image, signal: AbortSignal): Promise<Around> {
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

export const command = defineCommand({
  description:
    'With what it was made from, what was made from it, and how much each adds; with the VMs of all namespaces that you have access to, and ' +
    'the configurations and pools of this namespace that use it.',
  arguments: { image: { value: 'IMAGE', description: 'name of the image', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 image show sonoma', does: 'Show everything about an image' }],
  async run(context, { args: { image: name } }) {
    const { client, namespace } = await context.connect()
    const { signal } = context
    const image = await imageKind.get(client, { namespace, name, signal })
    // Programs get the record as the API returns it, and ask for the rest where they need it.
    if (context.isData) return printRecord(context, image, fields)
    return printRecord(context, { ...image, around: await around(client, namespace, image, signal) }, shownFields)
  },
})
