// Shows the steps of a VM from a watch while a request about it runs. If the watch fails, the request continues.

import { listVms, type Vm } from '../../../../api/vms/vms.ts'
import type { Client } from '../../../../client/client.ts'
import { watch } from '../../../../client/watch.ts'
import { wait } from '../../../../platform/retry.ts'
import type { Context } from '../../../command.ts'
import { type Board, type ProgressDisplay, type ProgressStep, startProgress } from '../../../output/progress.ts'
import { isNodeLost, pendingReason } from './reasons.ts'

interface Followed {
  readonly client: Client
  readonly namespace: string
  readonly name: string
  /** Called before a step is shown. */
  readonly onStep?: () => void
}

/** `work` gets a function that shows a text instead of the step. */
export async function whileFollowing<T>(
  context: Context,
  followed: Followed,
  work: (showText: (text: string) => void) => Promise<T>,
): Promise<T> {
  if (!context.isTalking) return work(() => undefined)
  const finished = new AbortController()
  const progress = startProgress(context, `VM ${followed.name}`)
  const showStep = (step: ProgressStep): void => {
    followed.onStep?.()
    progress.show(step)
  }
  const show = (vm: Vm): void => {
    const step = stepOf(vm)
    if (step) showStep(step)
  }
  const following = follow(followed, show, finished.signal).catch(() => undefined)
  try {
    return await work((text) => showStep({ text }))
  } finally {
    finished.abort()
    await following
    progress.end()
  }
}

/** How long a deletion runs without a progress line. Most take less. */
const quickMs = 300

/** Like whileFollowing, for deleting VMs. Shows steps on a terminal only, but always if the node is lost. */
export async function whileDeleting<T>(
  context: Context,
  followed: Followed & { readonly board: Board; readonly hintIfLost: string | undefined },
  work: () => Promise<T>,
): Promise<T> {
  if (!context.isTalking) return work()
  const { board, hintIfLost } = followed
  const finished = new AbortController()
  let progress: ProgressDisplay | undefined
  let hasHinted = false
  const show = (vm: Vm): void => {
    const isLost = isNodeLost(vm)
    const step = stepOf(vm)
    // Before the deletion has started, the record has no step of it.
    if (!step || vm.operation?.kind !== 'delete' || !(isLost || context.host.stderr.isTerminal)) return
    progress ??= board.item(`VM ${followed.name}`)
    progress.show(step)
    if (isLost && !hasHinted && hintIfLost !== undefined) board.above(() => context.note(hintIfLost))
    hasHinted ||= isLost
  }
  const following = wait(quickMs, finished.signal)
    .then(() => follow(followed, show, finished.signal))
    .catch(() => undefined)
  try {
    return await work()
  } finally {
    finished.abort()
    await following
    progress?.end()
  }
}

async function follow(
  { client, namespace, name }: Followed,
  show: (vm: Vm) => void,
  signal: AbortSignal,
): Promise<void> {
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  for await (const { type, object } of watch(client, listVms, input, { signal })) {
    if (type === 'BOOKMARK' || type === 'DELETED' || signal.aborted) continue
    show(object)
  }
}

function stepOf(vm: Vm): ProgressStep | undefined {
  // Why a VM is pending says more than its phase.
  const reason = vm.node === undefined ? pendingReason(vm) : undefined
  if (reason !== undefined) return { text: `waiting for a node: ${reason}` }
  return vm.operation && { text: vm.operation.phase, percent: vm.operation.percent }
}
