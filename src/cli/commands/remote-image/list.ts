// svc3 remote-image list
import { defineCommand, namespaced, printed } from '../../command.ts'
import { remoteImages } from './kind.ts'
import { printRemote } from './print.ts'

export const command = defineCommand({
  description: 'What the remotes have that the settings of the server name.',
  arguments: { names: { value: 'NAME', description: 'only these', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 remote-image list', does: 'What can be pulled' }],
  run: (context, { args: { names } }) => printRemote(context, remoteImages, names),
})
