// svc3 vm list
import { getVm, listVms, type Vm } from '../../../api/vms/vms.ts'
import { isVmName } from '../../../rules/names.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import { type Context, defineCommand, namespaced, printed, type Session } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './parts/columns.ts'
import { isOwnedBy, isWhole, ownerOf } from './parts/owner.ts'
import { noteReasons, verdictText } from './parts/reasons.ts'

export const command = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these VMs', names: 'vms', repeatable: true } },
  options: {
    label: { type: 'string', value: 'KEY=VALUE[,…]', repeatable: true, description: 'Only VMs with these labels' },
    owner: { type: 'string', value: 'OWNER', description: 'Only VMs of this user or service account; "me" is you' },
    pending: { type: 'boolean', description: 'Only VMs that wait, by their place in the queue' },
    watch: { type: 'boolean', description: 'Follow changes until Ctrl-C' },
    ...allNamespacesOption,
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm list', does: 'List the VMs of the default namespace' },
    { line: 'svc3 vm list demo -o wide', does: 'Show one VM with its node and power state' },
    { line: 'svc3 vm list --pending', does: 'Show who waits for what, and for about how long' },
    { line: 'svc3 vm list -A --owner me', does: 'List your VMs in all namespaces' },
    { line: 'svc3 vm list --owner me --label team=ios --watch', does: 'Follow your VMs with a label' },
  ],
  async run(context, { args: { names }, options }) {
    const isEverywhere = options['all-namespaces']
    if (options.watch && isEverywhere) throw new UsageError('--watch follows one namespace; remove --all-namespaces')
    if (options.pending && (options.watch || options.label.length > 0))
      throw new UsageError('--pending cannot be combined with --watch or --label')
    const owner = options.owner === undefined ? undefined : await ownerOf(context, options.owner)
    const fields = {
      // Of several names, all are fetched; of one, not thousands.
      ...(names.length === 1 && isVmName(names[0] ?? '') && { name: names[0] }),
      ...(owner !== undefined && isWhole(owner) && { owner }),
    }
    const fieldSelector = Object.entries(fields)
      .map(([field, value]) => `${field}=${value}`)
      .join(',')
    const labelSelector = options.label.join(',')
    const query = { ...(fieldSelector && { fieldSelector }), ...(labelSelector && { labelSelector }) }
    const session = await context.connect()
    if (options.pending) {
      const { printPending } = await import('./parts/pending.ts')
      const isOwn = (vm: { readonly owner: string }): boolean => owner === undefined || isOwnedBy(vm.owner, owner)
      return printPending(context, session, { isEverywhere, names, isMeant: isOwn })
    }
    const isMeant = (vm: Vm): boolean => owner === undefined || isOwnedBy(vm.owner, owner)
    const which = [
      ...(owner === undefined ? [] : [` owned by ${owner}`]),
      ...(labelSelector ? [` with label ${labelSelector}`] : []),
    ].join('')
    if (options.watch) {
      const { followVms } = await import('./parts/watch.ts')
      const isWanted = (vm: Vm): boolean => isMeant(vm) && (names.length === 0 || names.includes(vm.name))
      return followVms(context, session, { query, isWanted, none: `No VMs${which} in ${session.namespace}` })
    }
    const listed = await listNamespaced(context, session, isEverywhere, columns, (namespace) =>
      session.client.listAll(listVms, { params: { namespace }, query, signal: context.signal }),
    )
    const items = listed.items.filter(isMeant)
    const chosen = items.filter(({ name }) => names.length === 0 || names.includes(name))
    const exitCode = await printChosen(context, {
      ...listed,
      kind: 'vms',
      items,
      nameOf: (vm) => vm.name,
      wanted: names,
      none: `No VMs${which} in ${listed.where}`,
    })
    noteReasons(context, chosen, session.sameTargetFlags)
    if (context.format === 'wide' && names.length === 1) await noteVerdicts(context, session, chosen)
    return exitCode
  },
})

/** Node by node why a VM that is named waits: lists have only the summary. */
async function noteVerdicts(context: Context, { client }: Session, vms: readonly Vm[]): Promise<void> {
  for (const { namespace, name: vm } of vms) {
    const found = await client.call(getVm, { params: { namespace, vm }, signal: context.signal }).catch(() => undefined)
    for (const verdict of found?.nodes ?? []) context.note(visible(verdictText(verdict)))
  }
}
