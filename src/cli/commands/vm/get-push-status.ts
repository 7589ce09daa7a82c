// svc3 vm get-push-status
import { listPushJobs } from '../../../api/vms/push-jobs.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns, waitsFor } from './parts/push-columns.ts'

export const command = defineCommand({
  description: 'Apple silicon only. Finished jobs are listed for an hour.',
  arguments: { names: { value: 'JOB', description: 'only these jobs', repeatable: true } },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm get-push-status', does: 'List push jobs and their progress' },
    { line: 'svc3 vm get-push-status vm-push-4k2vx -o wide', does: 'Show one job with its digest or error' },
  ],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listPushJobs, { params: { namespace }, signal: context.signal }),
    )
    const code = await printChosen(context, {
      kind: 'pushjobs',
      ...listed,
      nameOf: ({ name }) => name,
      wanted: names,
      none: `No push jobs in ${listed.where}`,
    })
    // Too long for a cell.
    for (const { name, waiting } of listed.items)
      if (waiting && (names.length === 0 || names.includes(name)))
        context.note(visible(`Push job ${name}: ${waitsFor(waiting)}`))
    return code
  },
})
