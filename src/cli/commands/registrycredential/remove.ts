// svc3 regcred remove
import { removeRegistryCredential } from '../../../api/access/registry-credentials.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { checkServer, serverArgument } from './server.ts'

export const command = defineCommand({
  arguments: { server: serverArgument },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 regcred remove https://ghcr.io', does: 'Forget the credentials of the default namespace' },
    { line: 'svc3 regcred remove http://10.0.0.7:5000 -n svc-ios', does: 'Those of another namespace' },
  ],
  async run(context, { args }) {
    const { server } = checkServer(args.server)
    const { client, namespace } = await context.connect()
    const status = await client.call(removeRegistryCredential, {
      params: { namespace },
      body: { server },
      signal: context.signal,
    })
    await context.done(`Registry credentials for ${server} removed from namespace ${namespace}.`, status)
    return 0
  },
})
