// svc3 version
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
    const server = await serverVersion(context)
    const advice = server === undefined ? undefined : versionAdvice(client, server)
    if (advice !== undefined) context.note(advice)
    const text = server === undefined ? `client ${client}` : `client ${client}\nserver ${server}`
    if (context.isData) await context.done('', { client, server: server ?? null })
    else context.host.stdout.write(`${text}\n`)
  },
})

/** Returns undefined, and prints a note, if no server answers. */
async function serverVersion(context: Context): Promise<string | undefined> {
  try {
    const { client } = await context.connect(limits)
    return (await client.call(getClusterInfo, { signal: context.signal })).version
  } catch (error) {
    if (context.signal.aborted) throw error
    context.note(error instanceof Error ? error.message : 'No server answers')
    return undefined
  }
}
