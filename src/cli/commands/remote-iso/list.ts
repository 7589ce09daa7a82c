// svc3 remote-iso list
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printRemote } from '../remote-image/print.ts'
import { remoteIsos } from './kind.ts'

export const command = defineCommand({
  description: 'Lists the content of the remotes in the server settings.',
  arguments: { names: { value: 'NAME', description: 'only these', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 remote-iso list', does: 'List what can be pulled' }],
  run: (context, { args: { names } }) => printRemote(context, remoteIsos, names),
})
