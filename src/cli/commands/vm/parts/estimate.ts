// vm deploy --dry-run: shows the node and the image that the VM would use.
import { estimateVm, type VmEstimate } from '../../../../api/vms/estimates.ts'
import type { VmDeployment } from '../../../../api/vms/vm-deployment.ts'
import type { Context, Session } from '../../../command.ts'
import { type OutputColumn, sizeCell, visible } from '../../../output/output.ts'
import { verdictText } from './reasons.ts'

const columns: readonly OutputColumn<VmEstimate>[] = [
  { header: 'NODE', keep: 'always', cell: ({ node }) => node },
  { header: 'CPU', cell: ({ cpu }) => cpu },
  { header: 'MEMORY', cell: ({ memory }) => sizeCell(memory) },
  { header: 'IMAGE', cell: ({ image }) => image },
  { header: 'TYPE', cell: ({ architecture }) => architecture },
  { header: 'OS', cell: ({ os }) => os },
  { header: 'SIZE', cell: ({ size }) => sizeCell(size) },
  { header: 'STORED', wide: true, cell: ({ spaceUsed }) => sizeCell(spaceUsed) },
]

/** Returns exit code 1 if the VM would be pending. */
export async function estimate(context: Context, { client, namespace }: Session, body: VmDeployment): Promise<number> {
  const found = await client.call(estimateVm, { params: { namespace }, body, signal: context.signal })
  await context.print([found], columns, '')
  context.note(visible(found.message))
  if (context.format === 'wide') for (const verdict of found.nodes) context.note(visible(verdictText(verdict)))
  return found.node === undefined ? 1 : 0
}
