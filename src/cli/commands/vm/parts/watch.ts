// vm list --watch: a table that changes in place on a terminal; a line for each change in a pipe, and in JSON.
import { ApiError } from '../../../../api/errors.ts'
import { listVms, type Vm } from '../../../../api/vms/vms.ts'
import { type WatchEvent, watch } from '../../../../client/watch.ts'
import type { Context, Session } from '../../../command.ts'
import { liveTable } from '../../../output/live-table.ts'
import { growingTable } from '../../../output/output.ts'
import { lostText, noteConnection } from '../../../watch-note.ts'
import { columns } from './columns.ts'

interface Followed {
  readonly query: { readonly fieldSelector?: string; readonly labelSelector?: string }
  readonly none: string
  isWanted(vm: Vm): boolean
}

interface Shown {
  change(type: 'ADDED' | 'MODIFIED' | 'DELETED', vm: Vm): void
  /** All that is there comes again. */
  restart(): void
  connection(isConnected: boolean): void
  end(): Promise<void>
}

export async function followVms(context: Context, session: Session, followed: Followed): Promise<number> {
  const { host, format, signal } = context
  const isData = format === 'json' || format === 'yaml'
  const shown = host.stdout.isTerminal && !isData ? inPlace(context, followed.none) : await lineByLine(context, isData)
  try {
    while (!signal.aborted) {
      try {
        for await (const event of eventsOf(session, followed, signal, shown.connection))
          if (event.type !== 'BOOKMARK' && followed.isWanted(event.object)) shown.change(event.type, event.object)
      } catch (error) {
        // The service has forgotten what happened while there was no connection: from what is there now.
        if (!(error instanceof ApiError) || error.reason !== 'Expired') throw error
        shown.restart()
      }
    }
  } finally {
    await shown.end()
  }
  return 130
}

const eventsOf = (
  { client, namespace }: Session,
  { query }: Followed,
  signal: AbortSignal,
  onConnection: (isConnected: boolean) => void,
): AsyncGenerator<WatchEvent<Vm>> => watch(client, listVms, { params: { namespace }, query }, { signal, onConnection })

function inPlace({ host, rendering }: Context, none: string): Shown {
  const vms = new Map<string, Vm>()
  const table = liveTable(host.stdout, columns, rendering, none)
  const sorted = (): Vm[] => [...vms.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    change(type, vm) {
      if (type === 'DELETED') vms.delete(vm.name)
      else vms.set(vm.name, vm)
      table.show(sorted())
    },
    restart: () => vms.clear(),
    connection(isConnected) {
      table.say(isConnected ? undefined : lostText)
      if (isConnected) table.show(sorted())
    },
    end: () => table.end(),
  }
}

async function lineByLine(context: Context, isData: boolean): Promise<Shown> {
  const row = await growingTable(columns, context.rendering())
  return {
    change(type, vm) {
      const shown = type === 'DELETED' ? { ...vm, status: 'Deleted' } : vm
      context.host.stdout.write(isData ? `${JSON.stringify({ type, object: vm })}\n` : row(shown))
    },
    restart: () => undefined,
    connection: noteConnection(context),
    end: async () => undefined,
  }
}
