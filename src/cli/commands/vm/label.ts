// svc3 vm label
import { ApiError } from '../../../api/errors.ts'
import { getVm } from '../../../api/vms/vms.ts'
import { type LabelChange, parseLabelChange, relabelVm } from '../../../client/relabel.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { vmArgument } from './parts/vm-argument.ts'

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

export const command = defineCommand({
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
    return 0
  },
})
