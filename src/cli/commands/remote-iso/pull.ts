// svc3 remote-iso pull
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { described } from '../image/options.ts'
import { pullItem, waiting } from '../remote-image/pull-item.ts'
import { remoteIsos } from './kind.ts'

export const command = defineCommand({
  description: 'The server pulls the ISO in the background and resumes after a restart. Delete the ISO to cancel.',
  arguments: {
    remote: { value: 'REMOTE', description: 'name in remote-iso list', required: true },
    name: { value: 'NAME', description: 'name in the cluster (default: the same)' },
  },
  options: { ...waiting, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 remote-iso pull ventura.iso', does: 'Pull under the same name' },
    { line: 'svc3 remote-iso pull ventura.iso mine --wait', does: 'Pull under another name and wait' },
  ],
  run: (context, { args: { remote, name }, options: { description, wait, timeout } }) =>
    pullItem(context, remoteIsos, { remote, name, description, wait, timeoutMs: millisecondsOf(timeout) }),
})
