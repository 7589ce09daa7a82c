// Which VM may take which pool slot: they must match in every field that a guest could notice.
import type { VmShape } from '../../api/vms/vm-shape.ts'

/** The source of a VM's disk, as in records. */
export interface Pin {
  readonly imageContent?: string | undefined
  readonly imageRecipe?: string | undefined
}

export interface WarmRequest extends Pin {
  readonly shape: VmShape
  readonly imageReference?: string | undefined
  readonly reservedPorts: readonly unknown[]
  readonly isCold?: true | undefined
  readonly noWarm?: true | undefined
}

/** Why VMs of this shape cannot come from a pool; undefined if they can. */
export function neverWarm({ iso, systemSerial, gpuPassthrough, ...shape }: VmShape): string | undefined {
  if (iso !== undefined) return 'attaches an ISO'
  if (systemSerial !== undefined) return 'sets a serial number'
  if (shape.directories || shape.nested || shape.rosetta !== undefined) return 'has options of Apple silicon'
  return gpuPassthrough ? 'passes a GPU through' : undefined
}

/** Equal for a slot and a VM that can take it, apart from the choice of node. */
export function slotKey(shape: VmShape, { imageContent, imageRecipe }: Pin): string {
  const { image, architecture, cpu, memoryMiB, vncConsole, display, netBoost, legacyIO } = shape
  return JSON.stringify([
    image,
    imageContent ?? null,
    imageRecipe ?? null,
    architecture,
    cpu,
    memoryMiB,
    vncConsole,
    [display.width, display.height, display.dpi],
    netBoost,
    legacyIO,
  ])
}

/** The key of slots that the VM can take; undefined if it takes none. */
export function warmKeyOf(vm: WarmRequest): string | undefined {
  const { shape, imageContent, imageRecipe, imageReference, reservedPorts, isCold, noWarm } = vm
  if (isCold || noWarm || reservedPorts.length > 0 || imageReference !== undefined) return undefined
  if (neverWarm(shape) !== undefined || (imageContent ?? imageRecipe) === undefined) return undefined
  return slotKey(shape, vm)
}

interface SlotNode {
  readonly name: string
  readonly tags: readonly string[]
}

/** Checks name and tag. The slot already has its resources. */
const mayRunOn = ({ node, tag, tagRequired }: VmShape, { name, tags }: SlotNode): boolean =>
  (node === undefined || node === name) && (!tagRequired || tag === undefined || tags.includes(tag))

/** Prefers a node with the preferred tag, then the oldest slot. */
export function chooseSlot<S extends { readonly node: SlotNode; readonly createdAt: string }>(
  shape: VmShape,
  slots: readonly S[],
): S | undefined {
  const misses = ({ node }: S): number => (shape.tag !== undefined && !node.tags.includes(shape.tag) ? 1 : 0)
  let best: S | undefined
  for (const slot of slots) {
    if (!mayRunOn(shape, slot.node)) continue
    const order = best === undefined ? -1 : misses(slot) - misses(best) || (slot.createdAt < best.createdAt ? -1 : 1)
    if (order < 0) best = slot
  }
  return best
}
