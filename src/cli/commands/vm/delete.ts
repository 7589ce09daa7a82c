// svc3 vm delete
import { deleteVm, listVms } from '../../../api/vms/vms.ts'
import { defineCommand, millisecondsOf, namespaced, printed, type Session, waiting } from '../../command.ts'
import { yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'
import { UsageError } from '../../line/usage.ts'
import { startBoard } from '../../output/progress.ts'
import { whileDeleting } from './parts/follow.ts'

export const command = defineCommand({
  description: 'If one of several VMs cannot be deleted, the others still are.',
  arguments: { names: { value: 'NAME', description: 'VMs to delete', names: 'vms', repeatable: true } },
  options: {
    label: {
      type: 'string',
      value: 'KEY=VALUE[,…]',
      repeatable: true,
      description: 'Delete all VMs with these labels',
    },
    force: { type: 'boolean', description: 'Forget a VM whose node does not answer (admin)' },
    ...yesOption,
    // A node gives a guest some time to shut down.
    timeout: { ...waiting.timeout, default: 5 },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm delete demo', does: 'Delete a VM and its disk' },
    { line: 'svc3 vm delete ci-1 ci-2 ci-3 -n svc-ios', does: 'Delete several at once' },
    { line: 'svc3 vm delete --label team=ios --yes', does: 'Delete all VMs with a label, without a question' },
  ],
  async run(context, { args, options }) {
    const { label } = options
    if (args.names.length === 0 && label.length === 0) throw new UsageError('Specify VMs to delete, or --label')
    if (args.names.length > 0 && label.length > 0) throw new UsageError('Specify VMs or --label, not both')
    const session = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    const { client, namespace, sameTargetFlags } = session
    const names = label.length === 0 ? args.names : await labelled(session, label.join(','), context.signal)
    if (names.length === 0) context.note(`No VMs with label ${label.join(',')} in ${namespace}`)
    const board = startBoard(context)
    const hintIfLost = (vm: string): string | undefined =>
      options.force ? undefined : `An administrator can remove it now: svc3 vm delete ${vm} --force${sameTargetFlags}`
    return deleteEach(context, {
      names,
      kind: 'vm',
      nouns: ['VM', 'VMs'],
      yes: options.yes,
      question: (vms, { length }) => `Delete ${vms} in ${namespace} with ${length === 1 ? 'its disk' : 'their disks'}?`,
      listCommand: `vm list${sameTargetFlags}`,
      above: board.above,
      remove: (vm) =>
        whileDeleting(context, { client, namespace, name: vm, board, hintIfLost: hintIfLost(vm) }, () =>
          client.call(deleteVm, {
            params: { namespace, vm },
            ...(options.force && { query: { force: true } }),
            signal: context.signal,
          }),
        ),
    }).finally(() => board.end())
  },
})

async function labelled({ client, namespace }: Session, labelSelector: string, signal: AbortSignal): Promise<string[]> {
  const vms = await client.listAll(listVms, { params: { namespace }, query: { labelSelector }, signal })
  return vms.map(({ name }) => name)
}
