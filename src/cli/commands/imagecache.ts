// svc3 imagecache

import {
  addCachedImage,
  type CachedCopy,
  type CachedImage,
  getCachedImage,
  listCachedImages,
  type NodeResult,
  type NodeSelection,
  removeCachedImage,
} from '../../api/images/image-cache.ts'
import { listNodes } from '../../api/nodes/nodes.ts'
import { followList } from '../../client/follow-list.ts'
import { normalReference } from '../../rules/image-reference.ts'
import {
  type Context,
  defineCommand,
  millisecondsOf,
  namespaced,
  type Options,
  type OptionValues,
  printed,
  type Session,
  waiting,
} from '../command.ts'
import { Failure, Interrupted, TimedOut, UsageError } from '../line/usage.ts'
import { type OutputColumn, sizeCell, visible } from '../output/output.ts'
import { type Board, type ProgressDisplay, startBoard } from '../output/progress.ts'
import { listCommand } from '../record-commands.ts'

const imageArgument = {
  image: { value: 'IMAGE', description: 'name, or REGISTRY/IMAGE[:TAG]', required: true },
} as const

const selectionOptions = {
  nodes: { type: 'string', value: 'NODE,…', repeatable: true, description: 'Names of nodes' },
  tags: { type: 'string', value: 'TAG,…', repeatable: true, description: 'Nodes with all of these tags' },
  all: { type: 'boolean', description: 'All nodes of the namespace' },
} as const satisfies Options

function selectionOf({ nodes, tags, all }: OptionValues<typeof selectionOptions>): NodeSelection {
  const [names, labels] = [listed(nodes), listed(tags)]
  const given = [names.length > 0, labels.length > 0, all].filter(Boolean).length
  if (given !== 1)
    throw new UsageError('Specify one of --nodes, --tags and --all', 'For example --nodes mini-arm-13,mini-arm-14')
  return { ...(names.length > 0 && { nodes: names }), ...(labels.length > 0 && { tags: labels }), ...(all && { all }) }
}

const listed = (values: readonly string[]): string[] =>
  values.flatMap((value) => value.split(',')).filter((value) => value !== '')

const resultColumns: readonly OutputColumn<NodeResult>[] = [
  { header: 'NODE', cell: ({ node }) => node },
  { header: 'RESULT', cell: ({ result }) => result },
  { header: 'MESSAGE', cell: ({ message }) => message },
]

const isRefused = ({ code }: NodeResult): boolean => code >= 400

const namesOf = (
  { nodes }: CachedImage,
  isRight: (copy: CachedImage['nodes'][number]) => boolean,
): string | undefined =>
  nodes
    .filter(isRight)
    .map(({ node }) => node)
    .join(',') || undefined

const columns: readonly OutputColumn<CachedImage>[] = [
  { header: 'IMAGE', cell: ({ name }) => name },
  { header: 'TYPE', cell: ({ type }) => type },
  { header: 'SIZE', cell: ({ size }) => sizeCell(size) },
  { header: 'READY', cell: ({ nodes }) => `${nodes.filter(({ state }) => state === 'Ready').length}/${nodes.length}` },
  { header: 'NODES', cell: (image) => namesOf(image, () => true) },
  { header: 'PINNED', wide: true, cell: (image) => namesOf(image, ({ pinned }) => pinned) },
  { header: 'FAILED', wide: true, cell: (image) => namesOf(image, ({ state }) => state === 'Failed') },
]

const list = listCommand({
  description: 'Lists images that a node has or fetches.',
  argument: { value: 'IMAGE', description: 'only these images' },
  examples: [
    { line: 'svc3 imagecache list', does: 'Show which nodes have which images' },
    { line: 'svc3 ic list -o wide', does: 'Include added and failed nodes' },
  ],
  list: listCachedImages,
  columns,
  scope: 'namespace',
  parseName: normalReference,
})

const copyColumns: readonly OutputColumn<CachedCopy>[] = [
  { header: 'NODE', cell: ({ node }) => node },
  { header: 'STATE', cell: ({ state, progress }) => (progress ? `${state} ${progress.percent} %` : state) },
  { header: 'SIZE', cell: ({ spaceUsed }) => sizeCell(spaceUsed) },
  { header: 'PINNED', cell: ({ pinned }) => (pinned ? 'yes' : 'no') },
  { header: 'LAST-USED', cell: ({ lastUsed }) => (lastUsed === undefined ? undefined : { time: lastUsed }) },
  { header: 'ERROR', wide: true, cell: ({ errorMessage }) => errorMessage },
]

const info = defineCommand({
  arguments: imageArgument,
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 imagecache info sonoma', does: 'Show which nodes have the image, and the progress of others' },
    { line: 'svc3 ic info sonoma -o json', does: 'The same for a program' },
  ],
  async run(context, { args: { image } }) {
    const { client, namespace } = await context.connect()
    const found = await client.call(getCachedImage, { params: { namespace, image }, signal: context.signal })
    for (const { node, errorMessage } of found.nodes)
      if (errorMessage !== undefined) context.note(visible(`node ${node}: ${errorMessage}`))
    await context.print(found.nodes, copyColumns, `No node in namespace ${namespace} has image ${image}.`)
  },
})

interface CacheWait {
  readonly image: string
  readonly nodes: readonly string[]
  readonly timeoutMs: number
}

/** Waits until none of the nodes is fetching the image, and returns their copies. */
async function untilCached(
  context: Context,
  { client, namespace, sameTargetFlags }: Session,
  { image, nodes, timeoutMs }: CacheWait,
): Promise<CachedCopy[]> {
  const next = `To follow it: svc3 imagecache info ${image}${sameTargetFlags}`
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([context.signal, timeout])
  const show = linePerNode(startBoard(context), image)
  try {
    // The record of a node changes with each report of its agent, so each change is a reason to look.
    for await (const { type } of followList(client, listNodes, { params: { namespace } }, { signal })) {
      if (type === 'BOOKMARK') continue
      const found = await client.call(getCachedImage, { params: { namespace, image }, signal })
      const copies = found.nodes.filter(({ node }) => nodes.includes(node))
      const open = copies.filter(({ state }) => state === 'Pending' || state === 'Fetching')
      if (open.length === 0) return copies
      show(open)
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    show.end()
  }
  if (context.signal.aborted) throw new Interrupted('Stopped waiting; nodes continue to fetch it', next)
  throw new TimedOut(`Image ${image} is not on all nodes yet`, next)
}

type NodeLines = ((open: readonly CachedCopy[]) => void) & { end(): void }

/** Shows a line for each node that is still fetching. */
function linePerNode(board: Board, image: string): NodeLines {
  const lines = new Map<string, ProgressDisplay>()
  const show = (open: readonly CachedCopy[]): void => {
    for (const { node, state, progress } of open) {
      const line = lines.get(node) ?? board.item(`node ${node}`)
      lines.set(node, line)
      const text = state === 'Pending' ? `waiting for image ${image}` : `fetching image ${image}`
      line.show({ text, ...(progress && { percent: progress.percent }) })
    }
    for (const [node, line] of lines) {
      if (open.some((copy) => copy.node === node)) continue
      line.end()
      lines.delete(node)
    }
  }
  return Object.assign(show, { end: () => board.end() })
}

const add = defineCommand({
  description:
    'Nodes fetch the image in the background and keep it, up to date, until it is removed. Deployments then start\nat once. The tag of an image in a registry is resolved now; add the image again after it moved.',
  arguments: imageArgument,
  options: {
    ...selectionOptions,
    wait: { type: 'boolean', description: 'Wait until the nodes have it' },
    ...waiting,
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 imagecache add sonoma --all --wait', does: 'Cache on all nodes and wait' },
    { line: 'svc3 ic add sonoma --nodes mini-arm-13,mini-arm-14', does: 'Cache on two nodes' },
    { line: 'svc3 ic add sonoma --tags ios', does: 'Cache on nodes with a tag' },
    { line: 'svc3 ic add ghcr.io/team/sonoma:v1 --all', does: 'Cache an image of a registry' },
  ],
  async run(context, { args: { image }, options }) {
    const body = selectionOf(options)
    const session = await context.connect()
    const { client, namespace, sameTargetFlags } = session
    const { items } = await client.call(addCachedImage, { params: { namespace, image }, body, signal: context.signal })
    await context.print(items, resultColumns, 'No nodes.')
    const refused = items.filter(isRefused)
    if (options.wait) {
      const nodes = items.filter((item) => !isRefused(item)).map(({ node }) => node)
      const copies = await untilCached(context, session, { image, nodes, timeoutMs: millisecondsOf(options.timeout) })
      const failed = copies.find(({ state }) => state === 'Failed')
      if (failed)
        throw new Failure(
          `Node ${failed.node} could not fetch image ${image}: ${failed.errorMessage ?? 'failed'}`,
          `The agent keeps trying. Run svc3 imagecache info ${image}${sameTargetFlags} to see all nodes`,
        )
      context.note(`Image ${image} is on ${copies.map(({ node }) => node).join(', ') || 'no node'}`)
    }
    return refused.length > 0 ? 1 : 0
  },
})

const remove = defineCommand({
  description: 'The image stays in the cluster. The next deployment on such a node fetches it again.',
  arguments: imageArgument,
  options: { ...selectionOptions, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 imagecache remove sonoma --all', does: 'Remove from all nodes where no VM uses it' },
    { line: 'svc3 ic remove sonoma --nodes mini-arm-13', does: 'Remove from one node' },
  ],
  async run(context, { args: { image }, options }) {
    const body = selectionOf(options)
    const { client, namespace } = await context.connect()
    const params = { namespace, image }
    const { items } = await client.call(removeCachedImage, { params, body, signal: context.signal })
    await context.print(items, resultColumns, 'No nodes.')
    return items.some(isRefused) ? 1 : 0
  },
})

export const commands = {
  list,
  info,
  add,
  remove,
}
