// What the power commands share: one request, answered when it is done.

import { execVm, type vmCommands } from '../../../../api/vms/vms.ts'
import { awaitChange } from '../../../await-change.ts'
import { type Context, millisecondsOf } from '../../../command.ts'
import { whileFollowing } from './follow.ts'

type PowerCommand = (typeof vmCommands)[number]

const outcomes: Readonly<Record<PowerCommand, string>> = {
  start: 'started',
  stop: 'is stopped (STATUS stays Running; see POWER)',
  suspend: 'is suspended (STATUS stays Running; see POWER)',
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
  const { client, namespace, sameTargetFlags } = await context.connect({ attempts: 1 })
  const input = { params: { namespace, vm: name }, body: { command: power } }
  const next = `To follow it: svc3 vm show ${name}${sameTargetFlags}`
  const request = { timeoutMs: millisecondsOf(minutes), what: `the ${power}`, next }
  const vm = await whileFollowing(context, { client, namespace, name }, (onRetry) =>
    awaitChange(context, client, execVm, input, { ...request, onRetry }),
  )
  await context.done(`VM ${name} ${outcomes[power]}.`, vm)
  return 0
}
