// Says before a save or commit whether it keeps the memory of the VM, from the records of VM and node and from the manifest
// of the image, which knows the firmware.
import type { MemorySave } from '../../api/vms/vms.ts'
import { type CapturedMachine, memorySaveOf } from '../../rules/memory-save.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { ImageContents } from '../images/contents.ts'

type Boot = CapturedMachine['boot']

/** Content on another server that does not answer counts as unknown. */
const readMs = 2_000
const maxKnown = 1_000

export function openMemorySaves(
  { nodes }: Pick<Collections, 'nodes'>,
  contents: Pick<ImageContents, 'boot'>,
): (record: VmRecord) => Promise<MemorySave> {
  /** By digest of the manifest, which never changes. */
  const known = new Map<string, Boot>()

  const bootOf = async ({ imageContent, imageRecipe, shape }: VmRecord): Promise<Boot> => {
    if (imageContent === undefined) return imageRecipe === undefined ? undefined : 'kernel'
    if (known.has(imageContent)) return known.get(imageContent)
    const boot = await contents.boot(imageContent, AbortSignal.timeout(readMs)).catch(() => undefined)
    if (!boot) return undefined
    const usual = shape.architecture === 'arm64' ? 'uefi' : 'bios'
    const found = boot.kind === 'kernel' ? 'kernel' : (boot.firmware ?? usual)
    if (known.size >= maxKnown) known.clear()
    known.set(imageContent, found)
    return found
  }

  return async (record) => {
    const { shape, os, place } = record
    const machine: CapturedMachine = {
      architecture: shape.architecture,
      os,
      hasIso: shape.iso !== undefined,
      node: nodes.get('', place?.node ?? '')?.value.report,
    }
    // Reads nothing for VMs whose firmware does not matter.
    const memory = memorySaveOf(machine)
    return memory.saved === undefined ? memorySaveOf({ ...machine, boot: await bootOf(record) }) : memory
  }
}
