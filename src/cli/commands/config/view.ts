// svc3 config view
import { defineCommand, printed } from '../../command.ts'
import { fieldsOf, readConfig, stringOf } from '../../connect/connection.ts'
import type { Column } from '../../output/output.ts'

interface Shown {
  readonly name: string
  readonly current: boolean
  readonly apiUrl: string
  readonly namespace: string
  readonly ca: string
  readonly fingerprint: string
}

export const command = defineCommand({
  description: 'Shows the contexts and the current one. Tokens are not shown.',
  arguments: {},
  options: { ...printed },
  examples: [{ line: 'svc3 config view', does: 'List the contexts' }],
  async run(context) {
    const { config = {} } = readConfig(context.host)
    const current = stringOf(config.currentContext)
    const pins = fieldsOf(config.pins) ?? {}
    const items = Object.entries(fieldsOf(config.contexts) ?? {}).map(([name, value]): Shown => {
      const fields = fieldsOf(value) ?? {}
      const apiUrl = stringOf(fields.apiUrl) ?? ''
      const fingerprint = stringOf(pins[URL.canParse(apiUrl) ? new URL(apiUrl).origin : '']) ?? ''
      const [namespace, ca] = [stringOf(fields.namespace) ?? '', stringOf(fields.ca) ?? '']
      return { name, current: name === current, apiUrl, namespace, ca, fingerprint }
    })
    for (const name of ['SVC3_API_URL', 'SVC3_DATA', 'SVC3_CONTEXT'])
      if (context.host.env[name]) context.note(`${name} is set and overrides the current context`)
    await context.print(items, columns, 'No contexts. Create one with svc3 config set --api-url URL')
    return 0
  },
})

const columns: readonly Column<Shown>[] = [
  { header: 'CONTEXT', cell: ({ name }) => name },
  { header: 'CURRENT', cell: ({ current }) => (current ? 'yes' : '') },
  { header: 'API-URL', cell: ({ apiUrl }) => apiUrl },
  { header: 'NAMESPACE', cell: ({ namespace }) => namespace },
  { header: 'CA', wide: true, cell: ({ ca }) => ca },
  { header: 'FINGERPRINT', wide: true, cell: ({ fingerprint }) => fingerprint },
]
