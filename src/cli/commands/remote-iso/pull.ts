// svc3 remote-iso pull
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { described } from '../image/options.ts'
import { pullItem, waiting } from '../remote-image/pull-item.ts'
import { remoteIsos } from './kind.ts'

export const command = defineCommand({
  description: 'The service fetches it, and goes on by itself when it is restarted. Deleting the ISO ends it.',
  arguments: {
    remote: { value: 'REMOTE', description: 'name in "remote-iso list"', required: true },
    name: { value: 'NAME', description: 'what to call it; as there when left out' },
  },
  options: { ...waiting, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 remote-iso pull ventura.iso', does: 'Under the name that it has there' },
    { line: 'svc3 remote-iso pull ventura.iso mine --wait', does: 'Under another name, until it is there' },
  ],
  run: (context, { args: { remote, name }, options: { description, wait, timeout } }) =>
    pullItem(context, remoteIsos, { remote, name, description, wait, timeoutMs: millisecondsOf(timeout) }),
})
