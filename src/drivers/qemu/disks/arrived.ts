// Moves the disk of a running VM from the NBD socket of its image to the file, once the image is complete. Both have
// the same content, so an interruption is harmless: QEMU tells whether the move was done.
import path from 'node:path'
import type { Qmp } from '../control/qmp.ts'
import { type Base, baseNode, firstNode, layerNode, lowestNode, nodeOf, remoteName, requireChain } from './chain.ts'

const fileNode = 'image'

/** The NBD server must still answer, because QEMU lets pending reads finish first. */
export async function switchToFile(folder: string, image: Base, qmp: Qmp): Promise<void> {
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[]
  const names = new Set(nodes.map((node) => node['node-name']))
  if (!names.has(remoteName)) return
  const { base, layers } = await requireChain(folder)
  const [lowest] = layers
  if (!lowest || base.digest !== image.digest) throw new Error('the disk of this VM was made from another image')
  if (!names.has(fileNode)) await qmp.execute('blockdev-add', { 'node-name': fileNode, ...baseNode(image) })
  const node = [lowestNode, nodeOf(lowest)].find((name) => names.has(name)) ?? firstNode
  const options = { ...layerNode(path.join(folder, lowest.file), layers.length > 1), backing: fileNode }
  await qmp.execute('blockdev-reopen', { options: [{ 'node-name': node, ...options }] }, 60_000)
  await qmp.execute('blockdev-del', { 'node-name': remoteName })
}
