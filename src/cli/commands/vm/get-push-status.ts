// svc3 vm get-push-status
import { listPushJobs } from '../../../api/vms/push-jobs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './parts/push-columns.ts'

export const command = defineCommand({
  description: 'Apple silicon only. Jobs can be seen for an hour after their end.',
  arguments: { names: { value: 'JOB', description: 'only these jobs', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm get-push-status', does: 'All pushes, with how far they are' },
    { line: 'svc3 vm get-push-status vm-push-4k2vx -o wide', does: 'One, with its digest or why it failed' },
  ],
  async run(context, { args: { names } }) {
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'pushjobs',
      items: await client.listAll(listPushJobs, { params: { namespace }, signal: context.signal }),
      nameOf: ({ name }) => name,
      wanted: names,
      columns,
      none: `No push jobs in namespace ${namespace}.`,
      listCommand: `vm get-push-status -n ${namespace}`,
    })
  },
})
