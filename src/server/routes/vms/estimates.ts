// Handler of estimates: where a deployment would be placed now. Writes nothing.
import type * as api from '../../../api/vms/estimates.ts'
import { displayName } from '../../../auth/principal.ts'
import { defined } from '../../../platform/defined.ts'
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
  readonly roomsIn: (namespace: string) => readonly Candidate[]
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
      placed: { imageReference: pinned, ...defined({ os }) },
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
      const chosenMiB = found.ok ? found.allocation.memoryMiB : memoryMiB
      const amounts = found.ok ? amountsOn(found.node, found.allocation) : leastAmounts(demand)
      const overQuota = quotaExcess(services.collections, namespace, amounts)
      const node = found.ok && overQuota === undefined ? found.node.name : undefined
      const hasImage = warm !== undefined || (found.ok && found.node.images.includes(demand.image))
      const reasons = found.ok ? '' : summaryOf(found.reasons, demand, namespace)
      const message = outcome({ overQuota, warm, node, hasImage, reasons })
      // The chosen node comes first, then others that fit.
      const rank = (each: { readonly name: string; readonly fits: boolean }): number =>
        each.name === node ? 0 : each.fits ? 1 : 2
      const verdicts = verdictsOn(demand, rooms).toSorted((a, b) => rank(a) - rank(b))
      const estimate = {
        ...defined({ node, overQuota, warm: overQuota === undefined ? warm?.pool : undefined }),
        cpu,
        memory: chosenMiB === 0 ? 'auto' : gibibytes(chosenMiB),
        image,
        architecture,
        ...shown,
        hasImage,
        message: shown.imageProblem === undefined ? message : `${message}. Image not checked: ${shown.imageProblem}`,
        nodes: verdicts.slice(0, shownVerdicts),
      }
      return new Answer(200, estimate, true)
    },
  }
}

interface Outcome {
  readonly overQuota: string | undefined
  readonly warm: WarmVm | undefined
  readonly node: string | undefined
  readonly hasImage: boolean
  /** Why the VM fits on no node. */
  readonly reasons: string
}

function outcome({ overQuota, warm, node, hasImage, reasons }: Outcome): string {
  if (overQuota !== undefined) return `Would wait for the quota. ${overQuota}`
  if (warm) return `Would take a warm VM of pool ${warm.pool} on ${warm.node.name}`
  if (node === undefined) return `Would wait for a node. ${reasons}`
  return `Would run on ${node}, which ${hasImage ? 'has the image' : 'downloads the image first'}`
}

const shownImage = (
  os: VmRecord['os'],
  sizeBytes: number,
  storedBytes: number | undefined,
): Pick<api.VmEstimate, 'os' | 'size' | 'spaceUsed'> => ({
  size: diskSize(sizeBytes),
  ...defined({ os, spaceUsed: storedBytes === undefined ? undefined : roughSize(storedBytes) }),
})
