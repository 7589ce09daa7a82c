// svc3 regcred remove
import { removeRegistryCredential } from '../../../api/access/registry-credentials.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { confirmLoss, yesOption } from '../../confirm.ts'
import { checkServer, serverArgument } from './server.ts'

export const command = defineCommand({
  arguments: { server: serverArgument },
  options: { ...yesOption, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 regcred remove https://ghcr.io', does: 'Remove credentials from the default namespace' },
    { line: 'svc3 regcred remove http://10.0.0.7:5000 -n svc-ios', does: 'Remove credentials from another namespace' },
  ],
  async run(context, { args, options: { yes } }) {
    const { server } = checkServer(args.server)
    const { client, namespace } = await context.connect()
    const question = (): string => `Remove the credentials for ${server} from ${namespace}?`
    await confirmLoss(context, { yes, question, refused: 'Nothing removed' })
    const status = await client.call(removeRegistryCredential, {
      params: { namespace },
      body: { server },
      signal: context.signal,
    })
    await context.done(`Registry credentials for ${server} removed from namespace ${namespace}.`, status)
    return 0
  },
})
