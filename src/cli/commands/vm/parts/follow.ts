// Shows the steps of a VM, from a watch, while a request about it waits for its answer. If the watch fails, the request
// still goes on.
import { listVms, type Vm } from '../../../../api/vms/vms.ts'
import type { Client } from '../../../../client/client.ts'
import type { Context } from '../../../command.ts'
import { type Progress, type Step, startProgress } from '../../../output/progress.ts'
import { pendingReason } from './reasons.ts'

interface Followed {
  readonly client: Client
  readonly namespace: string
  readonly name: string
}

export async function whileFollowing<T>(context: Context, followed: Followed, work: () => Promise<T>): Promise<T> {
  if (!context.isTalking) return work()
  const over = new AbortController()
  const progress = startProgress(context, `VM ${followed.name}`)
  const following = follow(followed, progress, over.signal).catch(() => undefined)
  try {
    return await work()
  } finally {
    over.abort()
    await following
    progress.end()
  }
}

async function follow({ client, namespace, name }: Followed, progress: Progress, signal: AbortSignal): Promise<void> {
  const { watch } = await import('../../../../client/watch.ts')
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  for await (const { type, object } of watch(client, listVms, input, { signal })) {
    if (type === 'BOOKMARK' || type === 'DELETED' || signal.aborted) continue
    const step = stepOf(object)
    if (step) progress.show(step)
  }
}

function stepOf(vm: Vm): Step | undefined {
  // What keeps a VM off every node says more than that it waits for one.
  const reason = vm.node === undefined ? pendingReason(vm) : undefined
  if (reason !== undefined) return { text: `waiting for a node: ${reason}` }
  return vm.operation && { text: vm.operation.phase, percent: vm.operation.percent }
}
