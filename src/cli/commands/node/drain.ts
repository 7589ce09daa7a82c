// svc3 node drain
import { ApiError } from '../../../api/errors.ts'
import { drainNode, listNodes, type Node } from '../../../api/nodes/nodes.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, type Session } from '../../command.ts'
import { confirmed, confirmLoss, namesText } from '../../confirm.ts'
import { Interrupted } from '../../line/usage.ts'
import { startProgress } from '../../output/progress.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description:
    'Places no new VMs on the node. VMs cannot move: they keep running until deleted, or --delete-vms deletes them.',
  arguments: nodeArgument,
  options: {
    'delete-vms': { type: 'boolean', description: 'Delete its VMs and their disks' },
    ...confirmed,
    wait: { type: 'boolean', description: 'Wait until it is empty' },
    timeout: {
      type: 'minutes',
      short: 't',
      value: 'MINUTES',
      max: 100_000,
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
    const node =
      options.wait && drained.vms.length > 0 ? await untilEmpty(context, session, name, options.timeout) : drained
    const { vms } = node
    if (vms.length > 0) context.note(`Still on it: ${vms.join(', ')}`)
    await context.done(`Node ${name} ${vms.length === 0 ? 'drained' : 'cordoned'}.`, node)
    return 0
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

async function untilEmpty(
  context: Context,
  { client, namespace, again }: Session,
  name: string,
  minutes: number | undefined,
): Promise<Node> {
  const { watch } = await import('../../../client/watch.ts')
  const over = new AbortController()
  const stop = (): void => over.abort()
  context.signal.addEventListener('abort', stop, { once: true })
  if (context.signal.aborted) stop()
  const timer = minutes === undefined ? undefined : setTimeout(stop, millisecondsOf(minutes))
  const progress = startProgress(context, `node ${name}`)
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  try {
    for await (const { type, object } of watch(client, listNodes, input, { signal: over.signal })) {
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED' || object.vms.length === 0) return object
      progress.show({ text: `waiting for ${object.vms.join(', ')}` })
    }
  } finally {
    clearTimeout(timer)
    progress.end()
    context.signal.removeEventListener('abort', stop)
    over.abort()
  }
  const hint = `The drain continues. Run svc3 node list ${name}${again} to see the node`
  if (context.signal.aborted) throw new Interrupted('Interrupted', hint)
  throw new ApiError('Timeout', `Node ${name} still has VMs after ${timeLeft((minutes ?? 0) * 60)}`, { hint })
}
