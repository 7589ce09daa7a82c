// svc3 node show
import { notFound } from '../../../api/errors.ts'
import { listNodes, type Node } from '../../../api/nodes/nodes.ts'
import { longSize } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'
import { nodeArgument } from './node-argument.ts'

const fields: readonly Field<Node>[] = [
  { label: 'Name', value: (node) => node.name },
  { label: 'Namespace', value: (node) => node.namespace },
  { label: 'Status', value: (node) => (node.cordoned ? `${node.phase}, CORDONED` : node.phase) },
  { label: 'Reason', value: (node) => node.reason },
  { label: 'IP', value: (node) => node.nodeIP },
  { label: 'Architecture', value: (node) => node.architecture },
  { label: 'CPU', value: (node) => `${node.availableCpu} of ${node.allocatableCpu} free` },
  { label: 'Memory', value: (node) => `${longSize(node.availableMemory)} of ${longSize(node.allocatableMemory)} free` },
  {
    label: 'GPU',
    value: (node) => (node.allocatableGpu === 0 ? undefined : `${node.availableGpu} of ${node.allocatableGpu} free`),
  },
  { label: 'Max VMs', value: (node) => node.maxVms },
  { label: 'Max macOS VMs', value: (node) => node.maxMacosVms },
  { label: 'macOS', value: (node) => node.noMacos },
  { label: 'Tags', value: (node) => node.orkaTags.join(', ') },
  { label: 'VMs', value: (node) => node.vms },
  { label: 'Cached images', value: (node) => node.images },
  { label: 'OS', value: (node) => node.os },
  { label: 'Driver', value: (node) => node.driver },
  { label: 'Agent version', value: (node) => node.version },
  { label: 'Joined', value: (node) => ({ time: node.createdAt }) },
  { label: 'Last seen', value: ({ lastSeenAt }) => (lastSeenAt === undefined ? undefined : { time: lastSeenAt }) },
]

export const command = defineCommand({
  arguments: nodeArgument,
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 node show mini-arm-13', does: 'Show a node, its free resources and its VMs' }],
  async run(context, { args: { node: name } }) {
    const { client, namespace } = await context.connect()
    const input = { params: { namespace }, query: { fieldSelector: `name=${name}` }, signal: context.signal }
    const [node] = await client.listAll(listNodes, input)
    if (!node) throw notFound('nodes', name, { namespace, hint: 'Run svc3 node list -A to see all nodes' })
    return printRecord(context, node, fields)
  },
})
