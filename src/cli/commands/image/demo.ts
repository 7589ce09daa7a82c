// svc3 image demo

import { ApiError } from '../../../api/errors.ts'
import { type BuiltInImage, builtInImages } from '../../../api/images/built-in-images.ts'
import { addDemoImage, type Image, listImages } from '../../../api/images/images.ts'
import { listNodes } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { didYouMean } from '../../line/suggest.ts'
import { Failure, UsageError } from '../../line/usage.ts'

export const command = defineCommand({
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
    const image = builtIn(args.image ?? 'tiny')
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
    return 0
  },
})

function builtIn(word: string): BuiltInImage {
  const found = builtInImages.find((image) => image === word)
  if (found !== undefined) return found
  throw new UsageError(`"${word}" is not one of ${builtInImages.join(', ')}${didYouMean(word, builtInImages)}`)
}
