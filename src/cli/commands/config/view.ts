// svc3 config view
import { defineCommand, printed } from '../../command.ts'
import { fieldsOf, readConfig, textOf } from '../../connect/connection.ts'
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
  description: 'Shows everything but tokens.',
  arguments: {},
  options: { ...printed },
  examples: [{ line: 'svc3 config view', does: 'The contexts, and which is in use' }],
  async run(context) {
    const { config = {} } = readConfig(context.host)
    const current = textOf(config.currentContext)
    const pins = fieldsOf(config.pins) ?? {}
    const items = Object.entries(fieldsOf(config.contexts) ?? {}).map(([name, value]): Shown => {
      const fields = fieldsOf(value) ?? {}
      const apiUrl = textOf(fields.apiUrl) ?? ''
      const fingerprint = textOf(pins[URL.canParse(apiUrl) ? new URL(apiUrl).origin : '']) ?? ''
      const [namespace, ca] = [textOf(fields.namespace) ?? '', textOf(fields.ca) ?? '']
      return { name, current: name === current, apiUrl, namespace, ca, fingerprint }
    })
    for (const name of ['SVC3_API_URL', 'SVC3_CONTEXT'])
      if (context.host.env[name]) context.note(`${name} is set and goes before the context in use`)
    await context.print(items, columns, 'nothing is configured; "config set --api-url URL" does that')
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
