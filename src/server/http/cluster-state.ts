// The state of this server and its service as metrics: from memory, except for the store's own health.

import type { Clock } from '../../platform/clock.ts'
import { resources, totalOf } from '../../rules/queue/quota.ts'
import { capacityIn, shareOf, usageByOwner } from '../../rules/queue/shares.ts'
import { Horizon } from '../../store/horizon.ts'
import { type Collections, viewsOf } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import { quotaOf } from '../../store/records/quotas.ts'
import { holdsQuota, isDeleted } from '../../store/records/vms.ts'
import type { Store } from '../../store/store.ts'
import { factsOf } from '../tls/certificate-check.ts'
import type { State } from './metrics.ts'

interface Observed {
  readonly store: Store
  readonly collections: Collections
  readonly clock: Clock
  isLeading(): boolean
  /** Only where several servers share a store. */
  readonly staleness?: { readonly readAgeSeconds: number | undefined } | undefined
  /** As `Services` has it. */
  readonly imagesProblem?: (() => string | undefined) | undefined
}

export function clusterState({ store, collections, clock, isLeading, staleness, imagesProblem }: Observed): State {
  const { nodes, vms, certificates, quotas } = collections
  const horizon = new Horizon(store, viewsOf(collections))
  return {
    isLeading,
    isStoreWell: async () => (await store.health().catch(() => ({ ok: false }))).ok,
    areImagesWell: () => imagesProblem?.() === undefined,
    revision: () => Number(horizon.rev),
    readAgeSeconds: () => staleness?.readAgeSeconds ?? 0,
    nodes: () => {
      const ready = nodes.list().filter(({ value }) => value.isReady).length
      return { true: ready, false: nodes.list().length - ready }
    },
    vms: () => {
      const counts: Record<string, number> = {}
      for (const { value } of vms.list()) counts[value.observed.power] = (counts[value.observed.power] ?? 0) + 1
      return counts
    },
    certificateEnd: () => {
      const record = certificates.get('', 'api')?.value
      return record && Date.parse(factsOf(record.certificate).notAfter) / 1_000
    },
    oldestPendingSeconds: () => {
      let oldest: string | undefined
      for (const { value } of vms.list())
        if (isWaiting(value) && (oldest === undefined || value.createdAt < oldest)) oldest = value.createdAt
      return oldest === undefined ? 0 : Math.max(0, (clock.now().getTime() - Date.parse(oldest)) / 1_000)
    },
    quotas: (kind) =>
      quotas.list().flatMap(({ key, value }) => {
        const namespace = decodeURIComponent(key.slice(quotas.prefix.length).split('/')[0] ?? '')
        const used = kind === 'used' ? totalOf(value.used) : value.limits
        return resources.flatMap((resource) => {
          if (value.limits[resource] === undefined) return []
          const [name, factor] = resource === 'memoryMiB' ? ['memory', 2 ** 20] : [resource, 1]
          return [[[namespace, name], (used[resource] ?? 0) * factor] as const]
        })
      }),
    shares: () => {
      const records = nodes.list().map(({ value }) => value)
      const holders = Map.groupBy(
        vms.list().flatMap(({ value }) => (holdsQuota(value) ? [value] : [])),
        ({ namespace }) => namespace,
      )
      return [...holders].flatMap(([namespace, own]) => {
        const total = capacityIn(namespace, records)
        const weights = quotaOf(collections, namespace)?.value.weights ?? {}
        const usage = usageByOwner(own, (name) => nodes.get('', name)?.value)
        return [...usage].map(([owner, used]) => [[namespace, owner], shareOf(used, total, weights[owner])] as const)
      })
    },
  }
}

const isWaiting = (vm: VmRecord): boolean => !vm.place && !isDeleted(vm) && holdsQuota(vm)
