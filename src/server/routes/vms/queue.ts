// Handler of the queue: the order in which the scheduler places waiting VMs.
import type * as api from '../../../api/vms/queue.ts'
import type { Clock } from '../../../platform/clock.ts'
import { demandOf } from '../../../rules/placement.ts'
import { orderOf } from '../../../rules/queue/queue.ts'
import { leastAmounts, nothing } from '../../../rules/queue/quota.ts'
import { capacityIn, shareOf, usageByOwner } from '../../../rules/queue/shares.ts'
import { gibibytes } from '../../../rules/sizes.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { quotaOf } from '../../../store/records/quotas.ts'
import { holdsQuota, isDeleted } from '../../../store/records/vms.ts'
import { checkNamespace } from '../../gate/namespace.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { Endings } from '../../vms/endings.ts'

interface QueueServices {
  readonly collections: Collections
  readonly clock: Clock
}

export function queue(services: QueueServices): HandlersOf<typeof api> {
  const { collections, clock } = services
  const endings = new Endings(collections, clock)

  return {
    listQueue({ params: { namespace } }) {
      checkNamespace(services, namespace)
      const all = collections.vms.list(namespace).filter(({ value }) => holdsQuota(value) && !isDeleted(value))
      const waiting = all.filter(({ value }) => !value.place)
      const usage = usageByOwner(
        all.map(({ value }) => value),
        (name) => collections.nodes.get('', name)?.value,
      )
      const weights = quotaOf(collections, namespace)?.value.weights ?? {}
      const total = capacityIn(
        namespace,
        collections.nodes.list().map(({ value }) => value),
      )
      const turns = waiting.map(({ key, value }) => {
        const { owner, priority = 0, createdAt } = value
        return { key, owner, priority, createdAt, amounts: leastAmounts(demandOf(value)), value }
      })
      const items = orderOf(turns, { usage, weights, total }).map(({ value, owner }, index) => ({
        position: index + 1,
        ...queuedVmView(value),
        share: Number(shareOf(usage.get(owner) ?? nothing, total, weights[owner]).toFixed(4)),
        ...expected(endings.expectedSeconds(namespace, index + 1)),
      }))
      return { items }
    },
  }
}

const expected = (expectedWaitSeconds: number | undefined): Pick<api.QueuedVm, 'expectedWaitSeconds'> =>
  expectedWaitSeconds === undefined ? {} : { expectedWaitSeconds }

function queuedVmView(vm: VmRecord): Omit<api.QueuedVm, 'position' | 'share' | 'expectedWaitSeconds'> {
  const { name, namespace, owner, priority = 0, createdAt, shape, conditions } = vm
  const why = conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False')
  return {
    name,
    namespace,
    owner,
    priority,
    cpu: shape.cpu,
    memory: shape.memoryMiB === 0 ? 'auto' : gibibytes(shape.memoryMiB),
    reason: why?.reason ?? 'New',
    message: why?.message ?? 'Not tried yet',
    waitingSince: createdAt,
  }
}
