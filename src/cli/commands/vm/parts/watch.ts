// vm list --watch: updates a table in place on a terminal, and prints a line for each change in a pipe and in JSON.
import { listVms, type Vm } from '../../../../api/vms/vms.ts'
import { followList } from '../../../../client/follow-list.ts'
import type { Context, Session } from '../../../command.ts'
import { liveTable } from '../../../output/live-table.ts'
import { growingTable, jsonText } from '../../../output/output.ts'
import { lostText, noteConnection } from '../../../watch-note.ts'
import { columns } from './columns.ts'

interface Followed {
  readonly query: { readonly fieldSelector?: string; readonly labelSelector?: string }
  readonly none: string
  isWanted(vm: Vm): boolean
}

interface VmDisplay {
  change(type: 'ADDED' | 'MODIFIED' | 'DELETED', vm: Vm): void
  connection(isConnected: boolean): void
  end(): Promise<void>
}

export async function followVms(context: Context, session: Session, followed: Followed): Promise<number> {
  const { host, isData, signal } = context
  const shown = host.stdout.isTerminal && !isData ? inPlace(context, followed.none) : await lineByLine(context)
  const { client, namespace } = session
  const input = { params: { namespace }, query: followed.query }
  try {
    for await (const event of followList(client, listVms, input, { signal, onConnection: shown.connection }))
      if (event.type !== 'BOOKMARK' && followed.isWanted(event.object)) shown.change(event.type, event.object)
  } finally {
    await shown.end()
  }
  return 130
}

function inPlace({ host, rendering }: Context, none: string): VmDisplay {
  const vms = new Map<string, Vm>()
  const table = liveTable(host.stdout, columns, rendering, none)
  const sorted = (): Vm[] => [...vms.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    change(type, vm) {
      if (type === 'DELETED') vms.delete(vm.name)
      else vms.set(vm.name, vm)
      table.show(sorted())
    },
    connection(isConnected) {
      table.setStatus(isConnected ? undefined : lostText)
      if (isConnected) table.show(sorted())
    },
    end: () => table.end(),
  }
}

async function lineByLine(context: Context): Promise<VmDisplay> {
  const row = await growingTable(columns, context.rendering())
  return {
    change(type, vm) {
      const shown = type === 'DELETED' ? { ...vm, status: 'Deleted' } : vm
      context.host.stdout.write(context.isData ? `${jsonText({ type, object: vm })}\n` : row(shown))
    },
    connection: noteConnection(context),
    end: async () => undefined,
  }
}
