// svc3 runner-pool jobs
import { getRunnerPool, listRunnerJobs } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { jobColumns } from './columns.ts'

const order = { Running: 0, Waiting: 1, Completed: 2 } as const

export const command = defineCommand({
  description: 'Finished jobs are listed for a day.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'name of the runner pool', required: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 runner-pool jobs ios -o wide', does: 'List the jobs of a runner pool, with links to their runs' },
  ],
  async run(context, { args: { name: runnerpool } }) {
    const { client, namespace } = await context.connect()
    const { signal } = context
    await client.call(getRunnerPool, { params: { namespace, runnerpool }, signal })
    const jobs = await client.listAll(listRunnerJobs, { params: { namespace }, signal })
    const own = jobs
      .filter(({ pool }) => pool === runnerpool)
      .toSorted((a, b) => order[a.state] - order[b.state] || (a.queuedAt < b.queuedAt ? 1 : -1))
    await context.print(own, jobColumns, `No jobs of runner pool ${runnerpool}`)
    return 0
  },
})
