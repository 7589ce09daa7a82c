// svc3 vm list, show, delete, label and extend

import { ApiError } from '../../../api/errors.ts'
import { deleteVm, extendVm, getVm, listVms, type Vm } from '../../../api/vms/vms.ts'
import { type LabelChange, parseLabelChange, relabelVm } from '../../../client/relabel.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { isVmName } from '../../../rules/names.ts'
import { allNamespacesOption, listNamespaced } from '../../all-namespaces.ts'
import {
  type Context,
  defineCommand,
  millisecondsOf,
  namespaced,
  printed,
  type Session,
  waiting,
} from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { deleteEach } from '../../delete-each.ts'
import { UsageError } from '../../line/usage.ts'
import { sizeCell, visible } from '../../output/output.ts'
import { startBoard } from '../../output/progress.ts'
import type { Field } from '../../output/record.ts'
import { printChosen, showCommand } from '../../record-commands.ts'
import { columns } from './parts/columns.ts'
import { whileDeleting } from './parts/follow.ts'
import { isFullOwner, isOwnedBy, ownerFromOption } from './parts/owner.ts'
import { printPending } from './parts/pending.ts'
import { arrivalText, bootText, noteReasons, pendingReason, reachText, verdictText } from './parts/reasons.ts'
import { vmArgument } from './parts/vm-argument.ts'
import { followVms } from './parts/watch.ts'

const list = defineCommand({
  arguments: { names: { value: 'NAME', description: 'only these VMs', names: 'vms', repeatable: true } },
  options: {
    label: { type: 'string', value: 'KEY=VALUE[,…]', repeatable: true, description: 'Only VMs with these labels' },
    owner: { type: 'string', value: 'OWNER', description: 'Only VMs of this user or service account; "me" is you' },
    pending: { type: 'boolean', description: 'Only pending VMs, in the order of the queue' },
    watch: { type: 'boolean', description: 'Follow changes until Ctrl-C' },
    ...allNamespacesOption,
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm list', does: 'List the VMs of the default namespace' },
    { line: 'svc3 vm list demo -o wide', does: 'Show one VM with its node and power state' },
    { line: 'svc3 vm list --pending', does: 'Show the queue with estimated waits' },
    { line: 'svc3 vm list -A --owner me', does: 'List your VMs in all namespaces' },
    { line: 'svc3 vm list --owner me --label team=ios --watch', does: 'Follow your VMs with a label' },
  ],
  async run(context, { args: { names }, options }) {
    const isEverywhere = options['all-namespaces']
    if (options.watch && isEverywhere) throw new UsageError('--watch follows one namespace; remove --all-namespaces')
    if (options.pending && (options.watch || options.label.length > 0))
      throw new UsageError('--pending cannot be combined with --watch or --label')
    const owner = options.owner === undefined ? undefined : await ownerFromOption(context, options.owner)
    const fields = {
      // A single name is selected by the service; several names are filtered here.
      ...(names.length === 1 && isVmName(names[0] ?? '') && { name: names[0] }),
      ...(owner !== undefined && isFullOwner(owner) && { owner }),
    }
    const fieldSelector = Object.entries(fields)
      .map(([field, value]) => `${field}=${value}`)
      .join(',')
    const labelSelector = options.label.join(',')
    const query = { ...(fieldSelector && { fieldSelector }), ...(labelSelector && { labelSelector }) }
    const session = await context.connect()
    if (options.pending) {
      const isOwn = (vm: { readonly owner: string }): boolean => owner === undefined || isOwnedBy(vm.owner, owner)
      return printPending(context, session, { isEverywhere, names, isMeant: isOwn })
    }
    const isMeant = (vm: Vm): boolean => owner === undefined || isOwnedBy(vm.owner, owner)
    const which = [
      ...(owner === undefined ? [] : [` owned by ${owner}`]),
      ...(labelSelector ? [` with label ${labelSelector}`] : []),
    ].join('')
    if (options.watch) {
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

/** Prints for each node why it does not take a pending VM. Lists have only the summary. */
async function noteVerdicts(context: Context, { client }: Session, vms: readonly Vm[]): Promise<void> {
  for (const { namespace, name: vm } of vms) {
    const found = await client.call(getVm, { params: { namespace, vm }, signal: context.signal }).catch(() => undefined)
    for (const verdict of found?.nodes ?? []) context.note(visible(verdictText(verdict)))
  }
}

const vmFields: readonly Field<Vm>[] = [
  { label: 'Name', value: (vm) => vm.name },
  { label: 'Namespace', value: (vm) => vm.namespace },
  { label: 'Status', value: (vm) => vm.status },
  { label: 'Power', value: (vm) => vm.powerState },
  { label: 'Reason', value: pendingReason },
  { label: 'Booted', value: bootText },
  { label: 'Reachable', value: reachText },
  { label: 'Arriving', value: arrivalText },
  { label: 'Nodes', value: ({ nodes }) => nodes?.map(verdictText) },
  { label: 'Error', value: (vm) => vm.errorMessage },
  { label: 'Warning', value: (vm) => vm.warning?.split('\n') },
  { label: 'In progress', value: ({ operation }) => operation && `${operation.kind}: ${operation.phase}` },
  { label: 'Image', value: (vm) => vm.image },
  { label: 'Node', value: (vm) => vm.node },
  { label: 'IP', value: (vm) => vm.ip },
  { label: 'SSH port', value: (vm) => vm.ssh },
  { label: 'VNC port', value: (vm) => vm.vnc },
  { label: 'Screen sharing port', value: (vm) => vm.screenshare },
  {
    label: 'Other ports',
    value: (vm) => vm.reservedPorts.map((port) => `${port.nodePort} → ${port.vmPort}/${port.protocol}`),
  },
  { label: 'Port warnings', value: (vm) => vm.portWarnings },
  { label: 'CPU', value: (vm) => vm.cpu },
  { label: 'Memory', value: (vm) => sizeCell(vm.memory) },
  { label: 'Disk', value: (vm) => vm.diskGb && sizeCell(`${vm.diskGb}G`) },
  { label: 'GPU', value: (vm) => (vm.gpuPassthrough ? 'passed through' : undefined) },
  { label: 'Architecture', value: (vm) => vm.architecture },
  { label: 'Owner', value: (vm) => vm.owner },
  { label: 'Warm from pool', value: (vm) => vm.warm },
  { label: 'Requested', value: (vm) => (vm.status === 'Pending' ? { time: vm.deployDate } : undefined) },
  { label: 'Deployed', value: (vm) => (vm.status === 'Pending' ? undefined : { time: vm.deployDate }) },
  { label: 'Deleted at', value: (vm) => vm.expiresAt },
  { label: 'Labels', value: (vm) => Object.entries(vm.labels).map(([key, value]) => `${key}=${value}`) },
  { label: 'Metadata keys', value: (vm) => vm.metadataKeys.join(', ') },
]

const show = showCommand({
  argument: vmArgument.vm,
  examples: [
    { line: 'svc3 vm show demo', does: 'Show everything about a VM' },
    { line: 'svc3 vm show demo -o yaml', does: 'Show the record as the API returns it' },
  ],
  get: getVm,
  fields: vmFields,
})

const deleteVms = defineCommand({
  description: 'If one of several VMs cannot be deleted, the others still are.',
  arguments: { names: { value: 'NAME', description: 'VMs to delete', names: 'vms', repeatable: true } },
  options: {
    label: {
      type: 'string',
      value: 'KEY=VALUE[,…]',
      repeatable: true,
      description: 'Delete all VMs with these labels',
    },
    force: { type: 'boolean', description: 'Forget a VM whose node does not answer (admin)' },
    ...yesOption,
    // A guest gets some time to shut down.
    timeout: { ...waiting.timeout, default: 5 },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm delete demo', does: 'Delete a VM and its disk' },
    { line: 'svc3 vm delete ci-1 ci-2 ci-3 -n svc-ios', does: 'Delete several at once' },
    { line: 'svc3 vm delete --label team=ios --yes', does: 'Delete all VMs with a label, without a question' },
  ],
  async run(context, { args, options }) {
    const { label } = options
    if (args.names.length === 0 && label.length === 0) throw new UsageError('Specify VMs to delete, or --label')
    if (args.names.length > 0 && label.length > 0) throw new UsageError('Specify VMs or --label, not both')
    const session = await context.connect({ timeoutMs: millisecondsOf(options.timeout) })
    const { client, namespace, sameTargetFlags } = session
    const names = label.length === 0 ? args.names : await labelled(session, label.join(','), context.signal)
    if (names.length === 0) context.note(`No VMs with label ${label.join(',')} in ${namespace}`)
    const board = startBoard(context)
    const hintIfLost = (vm: string): string | undefined =>
      options.force ? undefined : `An administrator can remove it now: svc3 vm delete ${vm} --force${sameTargetFlags}`
    return deleteEach(context, {
      names,
      kind: 'vm',
      nouns: ['VM', 'VMs'],
      yes: options.yes,
      question: (vms, { length }) => `Delete ${vms} in ${namespace} with ${length === 1 ? 'its disk' : 'their disks'}?`,
      listCommand: `vm list${sameTargetFlags}`,
      above: board.above,
      remove: (vm) =>
        whileDeleting(context, { client, namespace, name: vm, board, hintIfLost: hintIfLost(vm) }, () =>
          client.call(deleteVm, {
            params: { namespace, vm },
            ...(options.force && { query: { force: true } }),
            signal: context.signal,
          }),
        ),
    }).finally(() => board.end())
  },
})

async function labelled({ client, namespace }: Session, labelSelector: string, signal: AbortSignal): Promise<string[]> {
  const vms = await client.listAll(listVms, { params: { namespace }, query: { labelSelector }, signal })
  return vms.map(({ name }) => name)
}

function changesOf(texts: readonly string[]): readonly LabelChange[] {
  const changes = texts.map((text) => {
    const change = parseLabelChange(text)
    if (change) return change
    throw new UsageError(`Invalid label "${text}"`, 'Write KEY=VALUE to set a label, or KEY- to remove it')
  })
  const twice = changes.find(({ name }, index) => changes.findIndex((each) => each.name === name) < index)
  if (twice) throw new UsageError(`Label ${twice.name} is specified twice`)
  return changes
}

const label = defineCommand({
  description:
    'Other labels are kept, also those set at the same time by another client. A label that already has another value is changed only ' +
    'with --overwrite; without it, the command changes nothing.',
  arguments: {
    ...vmArgument,
    labels: { value: 'KEY=VALUE|KEY-', description: 'labels to set or remove', required: true, repeatable: true },
  },
  options: {
    overwrite: { type: 'boolean', description: 'Change labels that have another value' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm label demo team=ios', does: 'Set a label' },
    { line: 'svc3 vm label demo team=web --overwrite', does: 'Change a label' },
    { line: 'svc3 vm label demo stage=test team-', does: 'Set one label and remove another' },
  ],
  async run(context, { args: { vm: name, labels: texts }, options: { overwrite } }) {
    const changes = changesOf(texts)
    const { client, namespace } = await context.connect()
    const { signal } = context
    const { before, labels } = await relabelVm(client, {
      namespace,
      name,
      changes,
      check: (now) => {
        const taken = changes.find(({ name, value }) => value !== undefined && (now[name] ?? value) !== value)
        if (!taken || overwrite) return
        throw new ApiError('Conflict', `VM ${name} already has label ${taken.name}=${now[taken.name]}`, {
          kind: 'vms',
          name,
          hint: 'Add --overwrite to change it',
        })
      },
      signal,
    })
    const missing = changes.filter((change) => change.value === undefined && before.labels[change.name] === undefined)
    for (const change of missing) context.note(`VM ${name} has no label ${change.name}`)
    const shown = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
    const vm = context.isData ? await client.call(getVm, { params: { namespace, vm: name }, signal }) : before
    await context.done(`Labels of VM ${name}: ${shown.join(', ') || 'none'}.`, vm)
  },
})

const extend = defineCommand({
  description:
    'When the time is up, the service deletes the VM with its disk. A terminal asks before it sets a time for a VM that has\nnone.',
  arguments: {
    ...vmArgument,
    ttl: { value: 'TTL', description: 'time left from now, such as 2h; 0 for no limit', required: true },
  },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 vm extend demo 2h', does: 'Delete the VM two hours from now' },
    { line: 'svc3 vm extend demo 2h --yes', does: 'The same, without a question' },
    { line: 'svc3 vm extend demo 0', does: 'Remove the time limit' },
  ],
  async run(context, { args: { vm: name, ttl }, options: { yes } }) {
    if (ttl !== '0' && !parseDuration(ttl))
      throw new UsageError(`Invalid TTL "${ttl}"`, 'Specify for example 2h, 30m or 0')
    const { client, namespace } = await context.connect()
    const params = { namespace, vm: name }
    // "Extend" sounds harmless, but it limits the life of a VM that has no limit.
    await confirmLoss(context, {
      yes: yes || ttl === '0',
      question: async () => {
        const { expiresAt } = await client.call(getVm, { params, signal: context.signal })
        return expiresAt === undefined ? `VM ${name} has no time limit. Delete it with its disk in ${ttl}?` : undefined
      },
      refused: `VM ${name} still has no time limit`,
    })
    const vm = await client.call(extendVm, { params, body: { ttl }, signal: context.signal })
    const end = vm.expiresAt === undefined ? 'has no time limit' : `will be deleted at ${vm.expiresAt}`
    await context.done(`VM ${name} ${end}.`, vm)
  },
})

export const commands = {
  list,
  show,
  delete: deleteVms,
  label,
  extend,
}
