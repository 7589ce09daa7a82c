// What the power commands share: one request, answered when it is done.

import { execVm, type vmCommands } from '../../../../api/vms/vms.ts'
import { type Context, millisecondsOf } from '../../../command.ts'
import { longRequest } from '../../../long-request.ts'
import { whileFollowing } from './follow.ts'

type PowerCommand = (typeof vmCommands)[number]

const outcomes: Readonly<Record<PowerCommand, string>> = {
  start: 'started',
  stop: 'stopped; it still lists as Running',
  suspend: 'suspended; it still lists as Running',
  resume: 'resumed',
  revert: 'reverted to its image',
}

/** `minutes` is how long the answer is waited for. */
export async function changePower(
  context: Context,
  name: string,
  power: PowerCommand,
  minutes: number,
): Promise<number> {
  const { client, namespace } = await context.connect({ attempts: 1 })
  const input = { params: { namespace, vm: name }, body: { command: power } }
  const request = { timeoutMs: millisecondsOf(minutes), lookAgain: `vm list ${name} -o wide -n ${namespace}` }
  const vm = await whileFollowing(context, { client, namespace, name }, () =>
    longRequest(context, client, execVm, input, request),
  )
  await context.done(`VM ${name} ${outcomes[power]}.`, vm)
  return 0
}
