// svc3 image demo
import { ApiError } from '../../../api/errors.ts'
import { addDemoImage, type Image } from '../../../api/images/images.ts'
import { listNodes } from '../../../api/nodes/nodes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { Failure } from '../../line/usage.ts'

export const command = defineCommand({
  description:
    'A small Linux to try things with (user admin, password admin). Nodes with QEMU on Debian build it from Debian packages at first use.',
  arguments: {},
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
    { line: 'svc3 image demo', does: 'For the architectures of the nodes' },
    { line: 'svc3 image demo --type arm64', does: 'Only for arm64' },
  ],
  async run(context, { options: { type } }) {
    const { client, namespace, again } = await context.connect()
    const { signal } = context
    const nodes = type === undefined ? await client.listAll(listNodes, { params: { namespace }, signal }) : []
    const types = type === undefined ? [...new Set(nodes.map(({ architecture }) => architecture))].sort() : [type]
    if (types.length === 0) throw new Failure(`No nodes in ${namespace}`, 'Join a node first: run svc3 node join-token')
    const images: Image[] = []
    const refusals: ApiError[] = []
    for (const each of types) {
      try {
        images.push(await client.call(addDemoImage, { params: { namespace }, body: { type: each }, signal }))
      } catch (error) {
        if (!(error instanceof ApiError && error.reason === 'Conflict')) throw error
        refusals.push(error)
      }
    }
    const [refusal] = refusals
    if (refusal && images.length === 0) throw refusal
    for (const { message } of refusals) context.note(message)
    const names = images.map(({ name }) => name)
    await context.done(`Added ${names.map((name) => `image ${name}`).join(' and ')}.`, images)
    context.note(`Deploy a VM: svc3 vm deploy --image ${names[0]}${again}`)
    return 0
  },
})
