// svc3 remote-image list
import { defineCommand, namespaced, printed } from '../../command.ts'
import { remoteImages } from './kind.ts'
import { printRemote } from './print.ts'

export const command = defineCommand({
  description: 'Lists the content of the remotes in the server settings.',
  arguments: { names: { value: 'NAME', description: 'only these', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 remote-image list', does: 'List what can be pulled' }],
  run: (context, { args: { names } }) => printRemote(context, remoteImages, names),
})
