// svc3 usage
import { listUsage, type Usage } from '../../api/service/usage.ts'
import { usageCsv } from '../../api/service/usage-csv.ts'
import { defined } from '../../platform/defined.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import type { OutputColumn } from '../output/output.ts'

const columns: readonly OutputColumn<Usage>[] = [
  { header: 'DAY', keep: 'always', cell: (item) => item.day },
  { header: 'OWNER', keep: 'whole', cell: (item) => item.owner },
  { header: 'VMS', cell: (item) => item.vms },
  { header: 'VM HOURS', cell: (item) => item.vmHours },
  { header: 'CORE HOURS', cell: (item) => item.coreHours },
  { header: 'QUEUE SECONDS', cell: (item) => item.queueSeconds },
  { header: 'NAMESPACE', wide: true, cell: (item) => item.namespace },
]

export const command = defineCommand({
  arguments: {},
  options: {
    from: { type: 'string', value: 'DAY', description: 'First day, such as 2026-11-01, in UTC (default: 29 days ago)' },
    to: { type: 'string', value: 'DAY', description: 'Last day (default: today)' },
    csv: { type: 'boolean', description: 'Print as CSV' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 usage', does: 'Show VM hours, core hours and queue time of the last 30 days, by day and owner' },
    { line: 'svc3 usage --from 2026-11-01 --csv', does: 'Print the usage since a day as CSV' },
  ],
  async run(context, { options: { from, to, csv } }) {
    const { client, namespace } = await context.connect()
    const query = defined({ from, to })
    const { items } = await client.call(listUsage, { params: { namespace }, query, signal: context.signal })
    if (csv) context.host.stdout.write(usageCsv(items))
    else await context.print(items, columns, `No VMs in ${namespace} in this time`)
  },
})
