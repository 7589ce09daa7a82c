// svc3 pool list
import { listPools } from '../../../api/vms/pools.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { noteFew } from '../../note-few.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these pools', names: 'pools', repeatable: true } },
  options: { ...allNamespacesOption, ...namespaced, ...printed },
  examples: [{ line: 'svc3 pool list -o wide', does: 'List the pools of the default namespace' }],
  async run(context, { args: { names }, options }) {
    const session = await context.connect()
    const listed = await listNamespaced(context, session, options['all-namespaces'], columns, (namespace) =>
      session.client.listAll(listPools, { params: { namespace }, signal: context.signal }),
    )
    const exitCode = await printChosen(context, {
      kind: 'pools',
      ...listed,
      nameOf: (pool) => pool.name,
      wanted: names,
      none: `No pools in ${listed.where}`,
    })
    // A wide table has a column for it.
    const isNoted = context.format !== 'wide'
    const chosen = listed.items.filter(({ name }) => isNoted && (names.length === 0 || names.includes(name)))
    const notes = chosen.flatMap(({ name, reason }) => (reason ? [`Pool ${name} is not full: ${reason}`] : []))
    noteFew(context, notes, `run svc3 pool list -o wide${session.sameTargetFlags} to see why`)
    return exitCode
  },
})
