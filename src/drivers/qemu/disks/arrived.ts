// Moves the disk of a running VM from an image that was on its way to the file that it has become. Both show the same, so
// that there is no wrong moment to be cut off: whoever comes next finds out from QEMU whether it is done.
import path from 'node:path'
import type { Qmp } from '../control/qmp.ts'
import { type Base, baseNode, firstNode, layerNode, lowestNode, nodeOf, remoteName, requireChain } from './chain.ts'

const fileNode = 'image'

/** `image` is whole, and NBD still answers: QEMU lets what it has asked there come to its end first. */
export async function standOnFile(folder: string, image: Base, qmp: Qmp): Promise<void> {
  const nodes = (await qmp.execute('query-named-block-nodes', { flat: true })) as { 'node-name': string }[]
  const names = new Set(nodes.map((node) => node['node-name']))
  if (!names.has(remoteName)) return
  const { base, layers } = await requireChain(folder)
  const [lowest] = layers
  if (!lowest || base.digest !== image.digest) throw new Error('the disk of this VM stands on another image')
  if (!names.has(fileNode)) await qmp.execute('blockdev-add', { 'node-name': fileNode, ...baseNode(image) })
  const node = [lowestNode, nodeOf(lowest)].find((name) => names.has(name)) ?? firstNode
  const options = { ...layerNode(path.join(folder, lowest.file), layers.length > 1), backing: fileNode }
  await qmp.execute('blockdev-reopen', { options: [{ 'node-name': node, ...options }] }, 60_000)
  await qmp.execute('blockdev-del', { 'node-name': remoteName })
}
