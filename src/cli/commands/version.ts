// svc3 version
import { listNodes } from '../../api/nodes/nodes.ts'
import { getClusterInfo } from '../../api/service/service.ts'
import { versionAdvice } from '../../rules/versions.ts'
import { type Context, connected, defineCommand, printed } from '../command.ts'

const limits = { timeoutMs: 3_000, attempts: 1 }

export const command = defineCommand({
  arguments: {},
  options: { ...connected, ...printed },
  examples: [{ line: 'svc3 version', does: 'Show client and server versions' }],
  async run(context) {
    const client = context.host.version
    const [server, agents = []] = await versionsOf(context)
    const advice = server === undefined ? undefined : versionAdvice(client, server)
    if (advice !== undefined) context.note(advice)
    const lines = Object.entries({ client, server, agents: agents.join(', ') }).filter(([, version]) => version)
    if (context.isData) await context.done('', { client, server: server ?? null, agents })
    else context.host.stdout.write(lines.map((line) => `${line.join(' ')}\n`).join(''))
  },
})

/** Returns nothing, and prints a note, if no server answers. */
async function versionsOf(context: Context): Promise<[server?: string, agents?: string[]]> {
  const { signal } = context
  try {
    const { client, namespace } = await context.connect(limits)
    const { version } = await client.call(getClusterInfo, { signal })
    // Without a login, only the server says its version.
    const nodes = await client.listAll(listNodes, { params: { namespace }, signal }).catch(() => [])
    return [version, [...new Set(nodes.map((node) => node.version))].sort()]
  } catch (error) {
    if (context.signal.aborted) throw error
    context.note(error instanceof Error ? error.message : 'No server answers')
    return []
  }
}
