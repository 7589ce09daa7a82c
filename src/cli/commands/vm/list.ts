// svc3 vm list
import { listVms, type Vm } from '../../../api/vms/vms.ts'
import { isVmName } from '../../../rules/names.ts'
import { type Context, defineCommand, namespaced, printed, type Session } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './parts/columns.ts'
import { ownerOf } from './parts/owner.ts'
import { noteReasons } from './parts/reasons.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these VMs', names: 'vms', repeatable: true } },
  options: {
    label: { type: 'string', value: 'KEY=VALUE[,…]', repeatable: true, description: 'Only those with these labels' },
    owner: { type: 'string', value: 'EMAIL', description: 'Only those of this person; "me" is you' },
    watch: { type: 'boolean', description: 'Go on with what changes, until Ctrl-C' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm list', does: 'The VMs of the default namespace' },
    { line: 'svc3 vm list demo -o wide', does: 'One VM, with its node and its power state' },
    { line: 'svc3 vm list --owner me --label team=ios --watch', does: 'One’s own of a team, and what becomes of them' },
  ],
  async run(context, { args: { names }, options }) {
    const fields = {
      // Of several names, all are fetched; of one, not thousands.
      ...(names.length === 1 && isVmName(names[0] ?? '') && { name: names[0] }),
      ...(options.owner !== undefined && { owner: await ownerOf(context, options.owner) }),
    }
    const fieldSelector = Object.entries(fields)
      .map(([field, value]) => `${field}=${value}`)
      .join(',')
    const labelSelector = options.label.join(',')
    const query = { ...(fieldSelector && { fieldSelector }), ...(labelSelector && { labelSelector }) }
    const session = await context.connect()
    if (options.watch) return follow(context, session, query, names)
    const { client, namespace } = session
    const items = await client.listAll(listVms, { params: { namespace }, query, signal: context.signal })
    noteReasons(
      context,
      items.filter(({ name }) => names.length === 0 || names.includes(name)),
    )
    return printChosen(context, {
      kind: 'vms',
      items,
      nameOf: (vm) => vm.name,
      wanted: names,
      columns,
      none: `No VMs in namespace ${namespace}.`,
      listCommand: `vm list -n ${namespace}`,
    })
  },
})

type Query = { readonly fieldSelector?: string; readonly labelSelector?: string }

async function follow(
  context: Context,
  { client, namespace }: Session,
  query: Query,
  names: readonly string[],
): Promise<number> {
  const { host, format, signal } = context
  const { watch } = await import('../../../client/watch.ts')
  const { growingTable } = await import('../../output/output.ts')
  const row = await growingTable(columns, context.rendering())
  const textOf = (type: string, vm: Vm): string => {
    if (format === 'json' || format === 'yaml') return `${JSON.stringify({ type, object: vm })}\n`
    return row(type === 'DELETED' ? { ...vm, status: 'Deleted' } : vm)
  }
  for await (const { type, object } of watch(client, listVms, { params: { namespace }, query }, { signal })) {
    if (type === 'BOOKMARK' || (names.length > 0 && !names.includes(object.name))) continue
    host.stdout.write(textOf(type, object))
  }
  return signal.aborted ? 130 : 0
}
