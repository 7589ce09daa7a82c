// The state of this server and its service as metrics: from memory, except for the store's own health.

import { Horizon } from '../../store/horizon.ts'
import { type Collections, viewsOf } from '../../store/records/collections.ts'
import type { Store } from '../../store/store.ts'
import { factsOf } from '../tls/certificate-check.ts'
import type { State } from './metrics.ts'

interface Observed {
  readonly store: Store
  readonly collections: Collections
  isLeading(): boolean
  /** Only where several servers share a store. */
  readonly staleness?: { readonly readAgeSeconds: number | undefined } | undefined
  /** As `Services` has it. */
  readonly imagesProblem?: (() => string | undefined) | undefined
}

export function clusterState({ store, collections, isLeading, staleness, imagesProblem }: Observed): State {
  const { nodes, vms, certificates } = collections
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
  }
}
