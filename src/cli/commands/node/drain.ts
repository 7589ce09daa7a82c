// svc3 node drain
import { ApiError } from '../../../api/errors.ts'
import { drainNode, listNodes, type Node } from '../../../api/nodes/nodes.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, type Session } from '../../command.ts'
import { Interrupted } from '../../line/usage.ts'
import { startProgress } from '../../output/progress.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
  description:
    'No new VMs come onto it. Those on it cannot move: they are left to end by themselves, or deleted with --delete-vms.',
  arguments: nodeArgument,
  options: {
    'delete-vms': { type: 'boolean', description: 'Delete the VMs on it, with their disks' },
    wait: { type: 'boolean', description: 'Answer when it is empty' },
    timeout: {
      type: 'minutes',
      short: 't',
      value: 'MINUTES',
      max: 100_000,
      description: 'With --wait: give up after so long, in minutes or as 1h30m; never when left out',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 node drain mini-arm-13 --wait', does: 'Wait until its VMs have ended' },
    { line: 'svc3 node drain mini-arm-13 --delete-vms --wait', does: 'Empty it now' },
  ],
  async run(context, { args: { node: name }, options }) {
    const { signal } = context
    const session = await context.connect()
    const params = { namespace: session.namespace, name }
    const body = { ...(options['delete-vms'] && { deleteVms: true }) }
    const drained = await session.client.call(drainNode, { params, body, signal })
    const node =
      options.wait && drained.vms.length > 0 ? await untilEmpty(context, session, name, options.timeout) : drained
    const { vms } = node
    if (vms.length > 0) context.note(`still on it: ${vms.join(', ')}`)
    await context.done(`Node ${name} takes no new VMs${vms.length === 0 ? ', and none is on it' : ''}.`, node)
    return 0
  },
})

async function untilEmpty(
  context: Context,
  { client, namespace }: Session,
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
      progress.show({ text: `waits for ${object.vms.join(', ')}` })
    }
  } finally {
    clearTimeout(timer)
    progress.end()
    context.signal.removeEventListener('abort', stop)
    over.abort()
  }
  const hint = `it goes on being emptied; "${context.host.calledAs} node list ${name}" shows it`
  if (context.signal.aborted) throw new Interrupted('interrupted', hint)
  throw new ApiError('Timeout', `VMs are still on node ${name} after ${timeLeft((minutes ?? 0) * 60)}`, { hint })
}
