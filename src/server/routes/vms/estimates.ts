// Handler of estimates: where a deployment would be placed now. Writes nothing.
import type * as api from '../../../api/vms/estimates.ts'
import { displayName } from '../../../auth/principal.ts'
import { isImageReference } from '../../../rules/image-reference.ts'
import { type Allocation, type Candidate, demandOf, place } from '../../../rules/placement.ts'
import { shownVerdicts, summaryOf, verdictsOn } from '../../../rules/placement-reasons.ts'
import { leastAmounts } from '../../../rules/queue/quota.ts'
import { amountsOn } from '../../../rules/queue/shares.ts'
import { diskSize, gibibytes, roughSize } from '../../../rules/sizes.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { Answer } from '../../http/answer.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { createEstimatedImages } from '../../remotes/estimated-images.ts'
import type { RegistryServices } from '../../remotes/registries.ts'
import { contentNow } from '../../vms/base-image.ts'
import { assertPossible, exists } from '../../vms/deployment.ts'
import { planVm } from '../../vms/planned-vm.ts'
import { quotaExcess } from '../../vms/quota.ts'

interface EstimateServices extends RegistryServices {
  readonly collections: Collections
  /** The free capacity of a namespace's nodes, as the scheduler sees it. */
  readonly roomsIn: (namespace: string) => readonly Candidate[]
  /** The warm VM that a deployment would take now. */
  readonly warmFor: (vm: Omit<VmRecord, 'name' | 'uid'>) => WarmVm | undefined
}

interface WarmVm {
  readonly pool: string
  readonly node: Candidate
  readonly allocation: Allocation
}

export function estimates(services: EstimateServices): HandlersOf<typeof api> {
  const inRegistry = createEstimatedImages(services)

  /** Returns what the caller is shown of the image, and what decides the placement. */
  async function imageOf(
    namespace: string,
    { image, architecture }: VmRecord['shape'],
  ): Promise<{
    readonly shown: Pick<api.VmEstimate, 'os' | 'size' | 'spaceUsed' | 'imageProblem'>
    readonly placed: Pick<VmRecord, 'imageReference' | 'os'>
  }> {
    if (!isImageReference(image)) {
      const record = services.collections.images.get('', image)?.value
      return { shown: record ? shownImage(record.os, record.sizeBytes, record.spaceUsedBytes) : {}, placed: {} }
    }
    const answer = await inRegistry({ namespace, image, architecture })
    if ('problem' in answer) return { shown: { imageProblem: answer.problem }, placed: {} }
    const { os, sizeBytes, storedBytes, pinned } = answer.found
    return {
      shown: shownImage(os, sizeBytes, storedBytes),
      placed: { imageReference: pinned, ...(os !== undefined && { os }) },
    }
  }

  return {
    async estimateVm({ params: { namespace }, body, principal, now }) {
      const request = { namespace, body, now, owner: displayName(principal), requestKey: undefined, isAwaited: false }
      const { record } = planVm(services, request)
      const { name } = body
      if (name && !body.shouldGenerateName && services.collections.vms.get(namespace, name))
        throw exists(name, namespace)
      const { shown, placed } = await imageOf(namespace, record.shape)
      const demand = demandOf({ ...record, ...placed })
      assertPossible(services.collections.nodes, namespace, demand, body)
      const rooms = services.roomsIn(namespace)
      const pin = contentNow(services.collections.images.get('', record.shape.image)?.value)
      const warm = services.warmFor({ ...record, ...placed, ...pin })
      const found = warm ? { ok: true as const, node: warm.node, allocation: warm.allocation } : place(demand, rooms)
      const { cpu, memoryMiB, image, architecture } = record.shape
      const hasImage = warm !== undefined || (found.ok && found.node.images.includes(demand.image))
      const chosenMiB = found.ok ? found.allocation.memoryMiB : memoryMiB
      const amounts = found.ok ? amountsOn(found.node, found.allocation) : leastAmounts(demand)
      const overQuota = quotaExcess(services.collections, namespace, amounts)
      const chosen = found.ok && overQuota === undefined ? found.node.name : undefined
      // The chosen node first, then others that fit.
      const rank = (each: { readonly name: string; readonly fits: boolean }): number =>
        each.name === chosen ? 0 : each.fits ? 1 : 2
      const nodes = verdictsOn(demand, rooms).toSorted((a, b) => rank(a) - rank(b))
      const where =
        overQuota !== undefined
          ? `Would wait for the quota. ${overQuota}`
          : warm
            ? `Would take a warm VM of pool ${warm.pool} on ${warm.node.name}`
            : found.ok
              ? `Would run on ${chosen}, which ${hasImage ? 'has the image' : 'downloads the image first'}`
              : `Would wait for a node. ${summaryOf(found.reasons, demand, namespace)}`
      return new Answer(
        200,
        {
          ...(chosen !== undefined && { node: chosen }),
          cpu,
          memory: chosenMiB === 0 ? 'auto' : gibibytes(chosenMiB),
          image,
          architecture,
          ...shown,
          ...(warm && overQuota === undefined && { warm: warm.pool }),
          ...(overQuota !== undefined && { overQuota }),
          hasImage,
          message: shown.imageProblem === undefined ? where : `${where}. Image not checked: ${shown.imageProblem}`,
          nodes: nodes.slice(0, shownVerdicts),
        },
        true,
      )
    },
  }
}

const shownImage = (
  os: VmRecord['os'],
  sizeBytes: number,
  storedBytes: number | undefined,
): Pick<api.VmEstimate, 'os' | 'size' | 'spaceUsed'> => ({
  ...(os !== undefined && { os }),
  size: diskSize(sizeBytes),
  ...(storedBytes !== undefined && { spaceUsed: roughSize(storedBytes) }),
})
