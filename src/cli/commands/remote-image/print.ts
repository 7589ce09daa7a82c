// Prints what remotes offer, and names those that did not answer.

import type { Context } from '../../command.ts'
import { printChosen } from '../../print-chosen.ts'
import { columns, type Remote } from './kind.ts'

export async function printRemote(context: Context, remote: Remote, wanted: readonly string[]): Promise<number> {
  const { client, namespace } = await context.connect()
  const { items, unavailable = [] } = await remote.list(client, namespace, context.signal)
  for (const { message } of unavailable) context.note(message)
  return printChosen(context, {
    kind: `remote-${remote.kind.noun}`,
    items,
    nameOf: ({ name }) => name,
    wanted,
    columns,
    none: 'No remotes configured, or they are empty. Configure remotes in config.json of the server.',
  })
}
