// svc3 node

import { notFound } from '../../api/errors.ts'
import {
  cordonNode,
  createJoinToken,
  deleteNode,
  drainNode,
  listExpectedNodes,
  listNodes,
  moveNode,
  type Node,
  tagNode,
  uncordonNode,
  untagNode,
} from '../../api/nodes/nodes.ts'
import { defined } from '../../platform/defined.ts'
import { timeLeft } from '../../rules/durations.ts'
import { isTag } from '../../rules/names.ts'
import { longSize } from '../../rules/sizes.ts'
import {
  type Argument,
  type Context,
  defineCommand,
  millisecondsOf,
  namespaced,
  printed,
  type Session,
} from '../command.ts'
import { confirmLoss, namesText, yesOption } from '../confirm.ts'
import { followRecord } from '../follow-record.ts'
import { UsageError } from '../line/usage.ts'
import { type OutputColumn, sizeCell, visible } from '../output/output.ts'
import type { Field } from '../output/record.ts'
import { changeCommand, deleteCommand, listCommand, printRecord } from '../record-commands.ts'

type Arguments = Readonly<Record<string, Argument>>

const nodeArgument = {
  node: { value: 'NODE', description: 'name of the node', required: true },
} as const satisfies Arguments

const tagArguments = {
  ...nodeArgument,
  tag: { value: 'TAG', description: 'at most 63 letters, digits, dashes, underscores and periods', required: true },
} as const satisfies Arguments

function checkTag(tag: string): string {
  if (isTag(tag)) return tag
  throw new UsageError(
    `Invalid tag "${tag}"`,
    `${tagArguments.tag.description}, starting and ending with a letter or digit`,
  )
}

const columns: readonly OutputColumn<Node>[] = [
  { header: 'NAME', keep: 'always', cell: (node) => node.name },
  { header: 'AVAILABLE-CPU', cell: (node) => node.availableCpu },
  { header: 'AVAILABLE-MEMORY', cell: (node) => sizeCell(node.availableMemory) },
  { header: 'STATUS', keep: 'always', cell: (node) => (node.cordoned ? `${node.phase},CORDONED` : node.phase) },
  { header: 'ARCHITECTURE', terminal: 'room', cell: (node) => node.architecture },
  { header: 'VMS', terminal: 'room', cell: (node) => node.vms.length },
  { header: 'TAGS', terminal: 'room', cell: (node) => node.orkaTags.join(',') || undefined },
  { header: 'IP', wide: true, keep: 'whole', cell: (node) => node.nodeIP },
  { header: 'ALLOCATABLE-CPU', wide: true, cell: (node) => node.allocatableCpu },
  { header: 'ALLOCATABLE-MEMORY', wide: true, cell: (node) => sizeCell(node.allocatableMemory) },
  { header: 'VERSION', wide: true, cell: (node) => node.version },
  { header: 'OS', wide: true, cell: (node) => node.os },
  { header: 'ARCHITECTURE', wide: true, cell: (node) => node.architecture },
  { header: 'TAGS', wide: true, cell: (node) => node.orkaTags.join(',') || undefined },
  { header: 'RUNTIME', wide: true, cell: (node) => node.driver || undefined },
]

const list = listCommand({
  examples: [
    { line: 'svc3 node list', does: 'List the nodes of the default namespace' },
    { line: 'svc3 node list mini-arm-13 -o wide', does: 'Show one node with its address, version and tags' },
  ],
  list: listNodes,
  columns,
  scope: 'all',
  emptyHint: ({ sameTargetFlags }) => `To add one: svc3 node join-token${sameTargetFlags}`,
  notes: ({ note }, nodes, _, isNamed) => {
    for (const { name, reason } of isNamed ? nodes : [])
      if (reason !== undefined) note(visible(`node ${name}: ${reason}`))
  },
})

/** Each check in two lines: what was found, and what to do. */
const checkLines =
  (wanted: 'ok' | 'warning' | 'problem') =>
  ({ checks = [] }: Node): readonly string[] =>
    checks
      .filter(({ result }) => result === wanted)
      .flatMap(({ check, found, advice }) => [`${check}: ${found}`, ...(advice === undefined ? [] : [`  ${advice}`])])

const fields: readonly Field<Node>[] = [
  { label: 'Name', value: (node) => node.name },
  { label: 'Namespace', value: (node) => node.namespace },
  { label: 'Status', value: (node) => (node.cordoned ? `${node.phase}, CORDONED` : node.phase) },
  { label: 'Reason', value: (node) => node.reason },
  { label: 'Problems', value: checkLines('problem') },
  { label: 'Warnings', value: checkLines('warning') },
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
  { label: 'Checks', value: checkLines('ok') },
  { label: 'VMs', value: (node) => node.vms },
  { label: 'Cached images', value: (node) => node.images },
  { label: 'OS', value: (node) => node.os },
  { label: 'Driver', value: (node) => node.driver },
  { label: 'Agent version', value: (node) => node.version },
  { label: 'Joined', value: (node) => ({ time: node.createdAt }) },
  { label: 'Last seen', value: ({ lastSeenAt }) => (lastSeenAt === undefined ? undefined : { time: lastSeenAt }) },
]

const show = defineCommand({
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

const tag = changeCommand({
  description: 'Deploy VMs to nodes with a tag: vm deploy --tag.',
  arguments: tagArguments,
  examples: [{ line: 'svc3 node tag mini-arm-13 ios', does: 'Tag a node' }],
  change: tagNode,
  body: ({ args: { tag } }) => ({ tag: checkTag(tag) }),
  done: (_, name, { args: { tag } }) => `Tag ${tag} added to node ${name}.`,
})

const untag = changeCommand({
  description: 'Running VMs stay.',
  arguments: tagArguments,
  examples: [{ line: 'svc3 node untag mini-arm-13 ios', does: 'Remove a tag' }],
  change: untagNode,
  body: ({ args: { tag } }) => ({ tag: checkTag(tag) }),
  done: (_, name, { args: { tag } }) => `Tag ${tag} removed from node ${name}.`,
})

const move = changeCommand({
  description: 'A node belongs to one namespace and runs only VMs of that namespace. Refused while it has VMs.',
  arguments: {
    ...nodeArgument,
    target: { value: 'NAMESPACE', description: 'new namespace; -n is the current one', required: true },
  },
  examples: [
    { line: 'svc3 node namespace mini-arm-13 svc-ios', does: 'Move a node from the default namespace to a team' },
  ],
  change: moveNode,
  body: ({ args: { target } }) => ({ namespace: target }),
  done: ({ namespace }, name) => `Node ${name} moved to namespace ${namespace}.`,
})

const cordon = changeCommand({
  description: 'Running VMs stay.',
  arguments: nodeArgument,
  examples: [{ line: 'svc3 node cordon mini-arm-13', does: 'Keep new VMs off a node before maintenance' }],
  change: cordonNode,
  body: () => ({}),
  done: (_, name) => `Node ${name} cordoned: no new VMs are placed on it.`,
})

const uncordon = changeCommand({
  description: 'Pending VMs are placed at once.',
  arguments: nodeArgument,
  examples: [{ line: 'svc3 node uncordon mini-arm-13', does: 'Allow new VMs on the node again' }],
  change: uncordonNode,
  body: () => ({}),
  done: (_, name) => `Node ${name} uncordoned.`,
})

const drain = defineCommand({
  description:
    'Places no new VMs on the node. VMs cannot move: they keep running until deleted, or --delete-vms deletes them.',
  arguments: nodeArgument,
  options: {
    'delete-vms': { type: 'boolean', description: 'Delete its VMs and their disks' },
    ...yesOption,
    wait: { type: 'boolean', description: 'Wait until it is empty' },
    timeout: {
      type: 'minutes',
      short: 't',
      value: 'MINUTES',
      // 24 days, the longest delay of a timer.
      max: 34_560,
      description: 'With --wait: how long to wait, in minutes or as 1h30m (default: no limit)',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node drain mini-arm-13 --wait', does: 'Wait until its VMs are deleted' },
    { line: 'svc3 node drain mini-arm-13 --delete-vms --wait', does: 'Delete its VMs now' },
  ],
  async run(context, { args: { node: name }, options }) {
    const { signal } = context
    const session = await context.connect()
    const params = { namespace: session.namespace, name }
    const body = { ...(options['delete-vms'] && { deleteVms: true }) }
    if (options['delete-vms'] && !options.yes) await confirmDeletes(context, session, name)
    const drained = await session.client.call(drainNode, { params, body, signal })
    const isWaiting = options.wait && drained.vms.length > 0
    const node = isWaiting ? await untilEmpty(context, session, drained, options.timeout) : drained
    const { vms } = node
    if (vms.length > 0) context.note(`Still on it: ${vms.join(', ')}`)
    await context.done(`Node ${name} ${vms.length === 0 ? 'drained' : 'cordoned'}.`, node)
  },
})

const confirmDeletes = (context: Context, { client, namespace }: Session, name: string): Promise<void> =>
  confirmLoss(context, {
    yes: false,
    question: async () => {
      const input = { params: { namespace }, query: { fieldSelector: `name=${name}` }, signal: context.signal }
      const vms = (await client.listAll(listNodes, input)).flatMap((node) => node.vms)
      return vms.length === 0 ? undefined : `Delete ${namesText(['VM', 'VMs'], vms)} on node ${name}, with all disks?`
    },
    refused: 'Nothing deleted',
  })

/** Waits until the node has no VMs or is deleted. */
async function untilEmpty(context: Context, session: Session, node: Node, minutes: number | undefined): Promise<Node> {
  const { name } = node
  const late = (ms: number) => ({ ms, message: `Node ${name} still has VMs after ${timeLeft(ms / 1_000)}` })
  const empty = await followRecord(context, session, listNodes, name, {
    label: `node ${name}`,
    isDone: ({ vms }) => vms.length === 0,
    step: ({ vms }) => ({ text: `waiting for ${vms.join(', ')}` }),
    timeout: minutes === undefined ? undefined : late(millisecondsOf(minutes)),
    what: 'the drain',
    next: `To see the node: svc3 node list ${name}${session.sameTargetFlags}`,
  })
  return empty ?? { ...node, vms: [] }
}

const deleteNodes = deleteCommand({
  description: 'Removes a node from the cluster and rejects its agent. Refused while it has VMs; drain it first.',
  argument: { value: 'NODE', description: 'nodes to remove' },
  examples: [{ line: 'svc3 node delete mini-arm-13', does: 'Remove a host' }],
  remove: deleteNode,
  question: (nodes, { names: { length } }) =>
    `Remove ${nodes} from the cluster? ${length === 1 ? 'It needs a join token' : 'They need join tokens'} to come back.`,
  sentence: (name) => `Node ${name} removed from the cluster.`,
})

const joinToken = defineCommand({
  description:
    'Prints a string with which a host joins a namespace as a node, and nothing else: the addresses of the servers,\n' +
    'the fingerprint of their key, and a secret that works once. On the host, svc3 agent --join-token-stdin reads it.',
  arguments: {},
  options: {
    duration: {
      type: 'duration',
      value: 'DURATION',
      defaultText: '1 hour',
      description: 'Lifetime, for example 30m or 7d',
    },
    reusable: { type: 'boolean', description: 'Let several hosts join with it until it expires' },
    name: { type: 'string', value: 'NAME', names: 'new', description: 'Host to expect; gets the tags with any token' },
    tag: { type: 'string', value: 'TAG', repeatable: true, description: 'Tag of the nodes that join; repeatable' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node join-token -n svc-ios', does: 'Join a host to the namespace of a team within an hour' },
    { line: 'svc3 node join-token --reusable --duration 1d', does: 'Join any number of hosts today' },
    { line: 'svc3 node join-token --duration 7d -o json', does: 'Valid for a week; show when it expires' },
    { line: 'svc3 node join-token --name mini-arm-14 --tag ios', does: 'Expect a host, and tag it when it joins' },
  ],
  async run(context, { options: { duration, reusable, name: node, tag } }) {
    const tags = tag.length > 0 ? tag.map(checkTag) : undefined
    const { client, namespace } = await context.connect()
    const issued = await client.call(createJoinToken, {
      params: { namespace },
      body: { ...defined({ duration, node, tags }), ...(reusable && { reusable }) },
      signal: context.signal,
    })
    if (context.isData) await context.done('', issued)
    // Older servers return only the token.
    else context.host.stdout.write(`${issued.join ?? issued.token}\n`)
    if (context.host.stdout.isTerminal && !context.isData) {
      const uses = reusable ? 'Any number of hosts can join with it' : 'One host can join with it'
      context.note(`${uses}, until ${issued.expiresAt}`)
      context.note('On the host: svc3 agent --join-token-stdin, or sudo svc3 agent install --join-token-stdin')
    }
  },
})

const expected = listCommand({
  description: 'Hosts that join-token --name expects, and the tags that they get when they join. For administrators.',
  argument: { names: 'new' },
  examples: [{ line: 'svc3 node expected -n svc-ios', does: 'List the hosts that have not joined yet' }],
  list: listExpectedNodes,
  columns: [
    { header: 'NAME', keep: 'always', cell: (node) => node.name },
    { header: 'TAGS', cell: (node) => node.orkaTags.join(',') || undefined },
    { header: 'CREATED', cell: (node) => ({ time: node.createdAt }) },
  ],
  scope: 'all',
})

export const commands = {
  list,
  show,
  tag,
  untag,
  namespace: move,
  cordon,
  uncordon,
  drain,
  delete: deleteNodes,
  'join-token': joinToken,
  expected,
}
