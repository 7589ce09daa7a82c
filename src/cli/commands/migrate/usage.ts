// svc3 migrate usage
import { getLegacyUsage, type LegacyUsage } from '../../../api/service/legacy-usage.ts'
import { defineCommand, printed } from '../../command.ts'
import type { Column } from '../../output/output.ts'

const columns: readonly Column<LegacyUsage>[] = [
  { header: 'CALLS', cell: (row) => row.calls },
  { header: 'REFUSED', cell: (row) => row.refused },
  { header: 'ENDPOINT', cell: (row) => row.endpoint },
  { header: 'SUBJECT', cell: (row) => row.subject },
  { header: 'CLIENT', cell: (row) => row.client },
  { header: 'LAST', cell: (row) => ({ time: row.lastAt }) },
  { header: 'FIRST', wide: true, cell: (row) => ({ time: row.firstAt }) },
]

export const command = defineCommand({
  description:
    'Whose programs call paths of 2.4.x, and how often. When nothing is left, the gateway can be switched off.',
  arguments: {},
  options: { ...printed },
  examples: [
    { line: 'svc3 migrate usage', does: 'Who calls what, the most frequent first' },
    { line: 'svc3 migrate usage -o json', does: 'The same for a program' },
  ],
  async run(context) {
    const { client } = await context.connect()
    const { enabled, items } = await client.call(getLegacyUsage, { signal: context.signal })
    await context.print(items, columns, 'Nobody has called a path of the 2.4.x API.')
    if (!enabled) context.note('the gateway is off: every one of these calls is answered with 410')
    return 0
  },
})
