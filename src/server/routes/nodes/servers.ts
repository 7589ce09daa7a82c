// Handlers for other servers: forward messages to nodes that are connected to this server, and serve content.
import { setTimeout as sleep } from 'node:timers/promises'
import type * as api from '../../../api/nodes/servers.ts'
import type { ContentStore } from '../../../images/content/content.ts'
import { currentRev } from '../../../store/records/caught-up.ts'
import { type Store, zeroRev } from '../../../store/store.ts'
import { blobBytes, blobOf } from '../../images/blobs.ts'
import type { GrowthCredentials } from '../../nodes/desired.ts'
import type { Fleet } from '../../nodes/fleet.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

/** By then the request for the resize has timed out. */
const growthMs = 15 * 60_000
/** A working store responds sooner. */
const storeMs = 1_000

interface ServerServices {
  readonly fleet: Fleet
  readonly growth: GrowthCredentials
  readonly ownContent: ContentStore
  readonly store: Store
  readonly tunnels: Tunnels
}

export function servers(services: ServerServices): HandlersOf<typeof api> {
  const { fleet, growth, ownContent, store, tunnels } = services
  return {
    tellNode: ({ body: { node, message } }) => ({ isTold: fleet.tell(node, message) }),

    noteSeenNodes({ body: { nodes } }) {
      for (const node of nodes) fleet.seen(node)
      return {}
    },

    passGrowth({ body: { uid, ...entry } }) {
      growth.set(uid, entry)
      setTimeout(() => growth.get(uid) === entry && growth.delete(uid), growthMs).unref()
      return {}
    },

    async tellRevision({ body: { after } }) {
      const late = sleep(storeMs, undefined, { ref: false })
      const rev = await Promise.race([currentRev(store), late]).catch(() => undefined)
      if (rev !== undefined) return { rev, isAway: false }
      const changes = store.exchange?.changesAfter(after)?.changes
      return { rev: store.exchange?.deliveredRev() ?? zeroRev, isAway: true, ...(changes && { changes: [...changes] }) }
    },

    openServerTunnel: ({ params: { node, tunnel } }) => tunnels.answer(node, tunnel),

    async findServerBlobs({ body: { digests } }) {
      const found: { digest: string; bytes: number }[] = []
      for (const digest of digests) {
        const bytes = await blobBytes(ownContent, digest)
        if (bytes !== undefined) found.push({ digest, bytes })
      }
      return { found }
    },

    getServerBlob: ({ params: { digest } }) => blobOf(ownContent, digest, 'Ask another server'),
  }
}
