// svc3 regcred list
import { listRegistryCredentials } from '../../../api/access/registry-credentials.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns } from './columns.ts'
import { checkServer } from './server.ts'

export const command = defineCommand({
  arguments: { servers: { value: 'SERVER', description: 'only these registries', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 regcred list', does: 'List the credentials of the default namespace' },
    {
      line: 'svc3 regcred list https://ghcr.io -o wide',
      does: 'Show who stored the credentials of a registry, and when',
    },
    { line: 'svc3 regcred list -n svc-ios -o json', does: 'List another namespace for a program' },
  ],
  async run(context, { args }) {
    const wanted = args.servers.map((text) => checkServer(text).server)
    const { client, namespace } = await context.connect()
    return printChosen(context, {
      kind: 'registrycredentials',
      items: await client.listAll(listRegistryCredentials, { params: { namespace }, signal: context.signal }),
      nameOf: (item) => item.server,
      wanted,
      columns,
      none: `No registry credentials in namespace ${namespace}.`,
      namespace,
    })
  },
})
