// svc3 vm delete
import { deleteVm } from '../../../api/vms/vms.ts'
import { defineCommand, millisecondsOf, namespaced, printed, waiting } from '../../command.ts'
import { deleteEach } from '../../delete-each.ts'

export const command = defineCommand({
  description: 'Its disk goes with it. When one of several cannot be deleted, the others are all the same.',
  arguments: { names: { value: 'NAME', description: 'VMs to delete', names: 'vms', required: true, repeatable: true } },
  options: {
    force: { type: 'boolean', description: 'Administrators: forget a VM whose node does not answer' },
    // A guest that does not end by itself is given some time by its node.
    timeout: { ...waiting.timeout, default: 5 },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm delete demo', does: 'Delete a VM and its disk' },
    { line: 'svc3 vm delete ci-1 ci-2 ci-3 -n svc-ios', does: 'Several at once' },
  ],
  async run(context, { args: { names }, options }) {
    const { client, namespace } = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    return deleteEach(context, {
      names,
      kind: 'vm',
      lookAgain: `vm list -n ${namespace}`,
      remove: (vm) =>
        client.call(deleteVm, {
          params: { namespace, vm },
          ...(options.force && { query: { force: true } }),
          signal: context.signal,
        }),
    })
  },
})
