// vm list --pending: prints the queue.

import { listQueue, type QueuedVm } from '../../../../api/vms/queue.ts'
import { timeLeft } from '../../../../rules/durations.ts'
import { listNamespaced } from '../../../all-namespaces.ts'
import type { Context, Session } from '../../../command.ts'
import { type OutputColumn, sizeCell } from '../../../output/output.ts'
import { printChosen } from '../../../record-commands.ts'

const columns: readonly OutputColumn<QueuedVm>[] = [
  { header: 'POSITION', keep: 'always', cell: ({ position }) => position },
  { header: 'NAME', keep: 'always', cell: ({ name }) => name },
  { header: 'OWNER', cell: ({ owner }) => owner },
  { header: 'PRIORITY', wide: true, cell: ({ priority }) => priority },
  { header: 'CPU', wide: true, cell: ({ cpu }) => cpu },
  { header: 'MEMORY', wide: true, cell: ({ memory }) => sizeCell(memory) },
  { header: 'SHARE', wide: true, cell: ({ share }) => `${(share * 100).toFixed(1)} %` },
  { header: 'SINCE', cell: ({ waitingSince }) => ({ time: waitingSince }) },
  {
    header: 'EXPECTED',
    keep: 'whole',
    cell: ({ expectedWaitSeconds }) => (expectedWaitSeconds === undefined ? 'unknown' : timeLeft(expectedWaitSeconds)),
  },
  { header: 'REASON', cell: ({ message }) => message },
]

interface QueueFilter {
  readonly isEverywhere: boolean
  readonly names: readonly string[]
  readonly isMeant: (vm: QueuedVm) => boolean
}

export async function printPending(context: Context, session: Session, { isEverywhere, names, isMeant }: QueueFilter) {
  const { client } = session
  const listed = await listNamespaced(
    context,
    session,
    isEverywhere,
    columns,
    async (namespace) => (await client.call(listQueue, { params: { namespace }, signal: context.signal })).items,
  )
  return printChosen(context, {
    ...listed,
    kind: 'vms',
    items: listed.items.filter(isMeant),
    nameOf: ({ name }) => name,
    wanted: names,
    none: `No VMs wait in ${listed.where}`,
  })
}
