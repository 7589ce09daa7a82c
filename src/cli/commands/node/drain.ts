// svc3 node drain
import { drainNode, listNodes, type Node } from '../../../api/nodes/nodes.ts'
import { timeLeft } from '../../../rules/durations.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed, type Session } from '../../command.ts'
import { confirmLoss, namesText, yesOption } from '../../confirm.ts'
import { followRecord } from '../../follow-record.ts'
import { nodeArgument } from './node-argument.ts'

export const command = defineCommand({
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
      // 24 days: timers take no longer ones.
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

/** A node that was deleted has none, either. */
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
