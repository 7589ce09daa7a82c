// svc3 migrate usage
import { getLegacyUsage, type LegacyUsage } from '../../../api/service/legacy-usage.ts'
import { connected, defineCommand, printed } from '../../command.ts'
import type { OutputColumn } from '../../output/output.ts'

const columns: readonly OutputColumn<LegacyUsage>[] = [
  { header: 'CALLS', cell: (row) => row.calls },
  { header: 'REFUSED', cell: (row) => row.refused },
  { header: 'ENDPOINT', cell: (row) => row.endpoint },
  { header: 'SUBJECT', cell: (row) => row.subject },
  { header: 'CLIENT', cell: (row) => row.client },
  { header: 'LAST', cell: (row) => ({ time: row.lastAt }) },
  { header: 'FIRST', wide: true, cell: (row) => ({ time: row.firstAt }) },
]

export const command = defineCommand({
  description: 'Shows who calls the 2.4.x API, and how often. When the list is empty, you can switch the gateway off.',
  arguments: {},
  options: { ...connected, ...printed },
  examples: [
    { line: 'svc3 migrate usage', does: 'List callers, the most frequent first' },
    { line: 'svc3 migrate usage -o json', does: 'The same for a program' },
  ],
  async run(context) {
    const { client } = await context.connect()
    const { enabled, items } = await client.call(getLegacyUsage, { signal: context.signal })
    await context.print(items, columns, 'No calls of the 2.4.x API.')
    if (!enabled) context.note('The gateway is off: these calls get 410')
  },
})
