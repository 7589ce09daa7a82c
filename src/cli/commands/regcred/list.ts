// svc3 regcred list
import { notFound } from '../../../api/errors.ts'
import { listRegistryCredentials } from '../../../api/registry-credentials.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { columns } from './columns.ts'
import { checkServer } from './server.ts'

export const command = defineCommand({
  arguments: { servers: { value: 'SERVER', description: 'only these registries', repeatable: true } },
  options: { ...namespaced, ...printed },
  examples: [
    { line: 'svc3 regcred list', does: 'The credentials of the default namespace' },
    { line: 'svc3 regcred list https://ghcr.io -o wide', does: 'One registry, with who stored it and when' },
    { line: 'svc3 regcred list -n svc-ios -o json', does: 'Another namespace, for a program' },
  ],
  async run(context, { args }) {
    const wanted = args.servers.map((text) => checkServer(text).server)
    const { client, namespace } = await context.connect()
    const all = await client.listAll(listRegistryCredentials, { params: { namespace }, signal: context.signal })
    const items = wanted.length === 0 ? all : all.filter((item) => wanted.includes(item.server))
    const missing = wanted.filter((server) => !items.some((item) => item.server === server))
    if (items.length > 0 || missing.length === 0) {
      await context.print(items, columns, `No registry credentials in namespace ${namespace}.`)
    }
    if (missing.length > 0) {
      const hint = `"${context.host.calledAs} regcred list -n ${namespace}" shows what is there`
      throw notFound('registrycredentials', missing.join('", "'), hint)
    }
    return 0
  },
})
