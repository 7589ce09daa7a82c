// svc3 events
import { type Event, listEvents } from '../../api/service/events.ts'
import { followList } from '../../client/follow-list.ts'
import { defaultNamespace } from '../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import { type Column, growingTable } from '../output/output.ts'
import { noteConnection } from '../watch-note.ts'

/** `isMixed`: events of deleted namespaces, which are kept in the default one, stand beside its own. */
const columnsOf = (isMixed: boolean): readonly Column<Event>[] => [
  { header: 'AT', cell: (item) => ({ time: item.at }) },
  { header: 'REASON', cell: (item) => item.reason },
  { header: 'INVOLVED', cell: (item) => `${item.involved.kind}/${item.involved.name}` },
  { header: 'ACTOR', cell: (item) => item.actor },
  ...(isMixed ? [{ header: 'NAMESPACE', terminal: 'always', cell: (item: Event) => item.namespace } as const] : []),
  { header: 'OUTCOME', wide: true, cell: (item) => item.outcome },
  { header: 'REQUEST', wide: true, cell: (item) => item.requestId },
  { header: 'NAMESPACE', wide: true, cell: (item) => item.namespace },
  { header: 'MESSAGE', keep: 'wide', cell: (item) => item.message },
]

export const command = defineCommand({
  arguments: {},
  options: {
    for: { type: 'string', value: 'KIND/NAME', description: 'Only events about this record' },
    watch: { type: 'boolean', description: 'Follow new events until Ctrl-C' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 events', does: 'List changes in the default namespace, and who made them' },
    { line: 'svc3 events --for vm/demo --watch', does: 'Follow a VM until Ctrl-C' },
    { line: 'svc3 events --for serviceaccount/jenkins -n svc-ios -o wide', does: 'Show the history of one record' },
  ],
  async run(context, { options }) {
    const fieldSelector = selectorOf(options.for)
    const { client, namespace } = await context.connect()
    const input = { params: { namespace }, query: { ...(fieldSelector !== undefined && { fieldSelector }) } }
    if (!options.watch) {
      const items = await client.listAll(listEvents, { ...input, signal: context.signal })
      const isMixed = items.some((event) => event.namespace !== namespace)
      await context.print(items, columnsOf(isMixed), `No events in ${namespace}`)
      return 0
    }
    const row = await growingTable(columnsOf(namespace === defaultNamespace), context.rendering())
    const told = { signal: context.signal, onConnection: noteConnection(context) }
    for await (const { type, object } of followList(client, listEvents, input, told)) {
      if (type === 'ADDED') context.host.stdout.write(context.isData ? `${JSON.stringify(object)}\n` : row(object))
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
  pool: 'pools',
  'runner-pool': 'runner-pools',
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
    `Invalid --for "${text}": specify KIND/NAME`,
    `Choose KIND from ${[...new Set(Object.values(kinds))].join(', ')}`,
  )
}
