// Where a deployment would go: the rules of placement on what nodes have free now. Nothing is written.
import type * as api from '../../api/estimates.ts'
import { displayName } from '../../auth/principal.ts'
import { demandOf, nowhere, place, verdictsOn } from '../../rules/placement.ts'
import { gibibytes } from '../../rules/sizes.ts'
import { exists, planVm } from '../deployment.ts'
import { Answer, type HandlersOf } from '../handlers.ts'
import type { Services } from '../services.ts'

const shownNodes = 100

export function estimates(services: Services): HandlersOf<typeof api> {
  return {
    estimateVm({ params: { namespace }, body, principal, now }) {
      const request = { namespace, body, now, owner: displayName(principal), requestKey: undefined, isAwaited: false }
      const { record } = planVm(services, request)
      const { name } = body
      if (name && !body.shouldGenerateName && services.collections.vms.get(namespace, name))
        throw exists(name, namespace)
      const demand = demandOf(record)
      const rooms = services.roomsIn(namespace)
      const found = place(demand, rooms)
      const { cpu, memoryMiB, image, architecture } = record.shape
      const hasImage = found.ok && rooms.some((room) => room.name === found.node && room.images.includes(demand.image))
      const chosenMiB = found.ok ? found.allocation.memoryMiB : memoryMiB
      const chosen = found.ok ? found.node : undefined
      // The one it would go to first, then others that could take it.
      const rank = (each: { readonly name: string; readonly fits: boolean }): number =>
        each.name === chosen ? 0 : each.fits ? 1 : 2
      const nodes = verdictsOn(demand, rooms).toSorted((a, b) => rank(a) - rank(b))
      return new Answer(
        200,
        {
          ...(found.ok && { node: found.node }),
          cpu,
          memory: chosenMiB === 0 ? 'auto' : gibibytes(chosenMiB),
          image,
          architecture,
          hasImage,
          message: found.ok
            ? `it would go to node "${found.node}", which ${hasImage ? 'has the image' : 'gets the image first'}`
            : `it would wait for a node: ${nowhere(found, demand, namespace)}`,
          nodes: nodes.slice(0, shownNodes),
        },
        true,
      )
    },
  }
}
