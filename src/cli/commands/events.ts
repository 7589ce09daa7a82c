// svc3 events
import { type Event, listEvents } from '../../api/service/events.ts'
import { watch } from '../../client/watch.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import { type Column, growingTable } from '../output/output.ts'

const columns: readonly Column<Event>[] = [
  { header: 'AT', cell: (item) => ({ time: item.at }) },
  { header: 'REASON', cell: (item) => item.reason },
  { header: 'INVOLVED', cell: (item) => `${item.involved.kind}/${item.involved.name}` },
  { header: 'ACTOR', cell: (item) => item.actor },
  { header: 'OUTCOME', wide: true, cell: (item) => item.outcome },
  { header: 'REQUEST', wide: true, cell: (item) => item.requestId },
  { header: 'MESSAGE', wide: true, cell: (item) => item.message },
]

export const command = defineCommand({
  arguments: {},
  options: {
    for: { type: 'string', value: 'KIND/NAME', description: 'Only what concerns this' },
    watch: { type: 'boolean', description: 'Go on with what happens from now on, until Ctrl-C' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 events', does: 'What was changed in the default namespace, and by whom' },
    { line: 'svc3 events --for vm/demo --watch', does: 'What becomes of a VM, until Ctrl-C' },
    { line: 'svc3 events --for serviceaccount/jenkins -n svc-ios -o wide', does: 'The history of one thing' },
  ],
  async run(context, { options }) {
    const fieldSelector = selectorOf(options.for)
    const { client, namespace } = await context.connect()
    const input = { params: { namespace }, query: { ...(fieldSelector !== undefined && { fieldSelector }) } }
    if (!options.watch) {
      const items = await client.listAll(listEvents, { ...input, signal: context.signal })
      await context.print(items, columns, `Nothing has been changed in namespace ${namespace}.`)
      return 0
    }
    const isData = context.format === 'json' || context.format === 'yaml'
    const row = await growingTable(columns, context.rendering())
    for await (const { type, object } of watch(client, listEvents, input, { signal: context.signal })) {
      if (type === 'ADDED') context.host.stdout.write(isData ? `${JSON.stringify(object)}\n` : row(object))
    }
    return context.signal.aborted ? 130 : 0
  },
})

/** What people call things on this command line → what the API calls them. */
const kinds: Readonly<Record<string, string>> = {
  registrycredential: 'registry-credentials',
  regcred: 'registry-credentials',
  namespace: 'namespaces',
  ns: 'namespaces',
  serviceaccount: 'service-accounts',
  sa: 'service-accounts',
  rolebinding: 'role-bindings',
  rb: 'role-bindings',
  certificate: 'certificates',
  vm: 'vms',
  'vm-config': 'vm-configs',
  vmc: 'vm-configs',
  node: 'nodes',
  image: 'images',
  iso: 'isos',
  pushjob: 'push-jobs',
}

function selectorOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const [word = '', ...rest] = text.split('/')
  const name = rest.join('/')
  const kind = kinds[word] ?? kinds[word.replace(/s$/, '')] ?? Object.values(kinds).find((known) => known === word)
  if (kind && name) return `involved.kind=${kind},involved.name=${name}`
  throw new UsageError(
    `"${text}" is not of the form KIND/NAME`,
    `KIND is one of ${[...new Set(Object.values(kinds))].join(', ')}`,
  )
}
