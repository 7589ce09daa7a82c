// Background work of a server: controllers, which run on the leader, and loops for the server's own files.
import { collectImages } from '../controllers/collect-images.ts'
import { collectNamespaces } from '../controllers/collect-namespaces.ts'
import { startController } from '../controllers/controller.ts'
import { countUsage } from '../controllers/count-usage.ts'
import { expireRecords } from '../controllers/expire-records.ts'
import { expireVms } from '../controllers/expire-vms.ts'
import { forgetLeftovers } from '../controllers/forget-leftovers.ts'
import { markNodes } from '../controllers/mark-nodes.ts'
import { pullImages } from '../controllers/pull-images.ts'
import { recordEvents } from '../controllers/record-events.ts'
import { replicateImages } from '../controllers/replicate-images.ts'
import { driveRunners } from '../controllers/runners/drive-runners.ts'
import { fillPools } from '../controllers/scheduling/fill-pools.ts'
import { Placements } from '../controllers/scheduling/placements.ts'
import { scheduleVms } from '../controllers/scheduling/schedule-vms.ts'
import { settleCaptures } from '../controllers/settle-captures.ts'
import { trimEvents } from '../controllers/trim-events.ts'
import { collect } from '../images/collect.ts'
import type { Loop } from '../platform/loop.ts'
import { forgetUploads } from '../server/images/store.ts'
import { createPulls } from '../server/remotes/image-pulls.ts'
import type { Server } from './assemble.ts'
import { clusterUid, collectableIn, type ImagePlace } from './image-place.ts'
import { runnerWorld } from './runner-world.ts'
import { present, replicasIn } from './sharing.ts'

/** Starts the controllers and returns how to stop them. `term` is that of this leader, if the store is shared. */
export function startControllers(services: Server, place: ImagePlace, term?: number): () => Promise<void> {
  const { presence, peers, collections, certificates, signingKeys } = services
  const isRemoved = (server: string | undefined): boolean =>
    peers !== undefined && server !== undefined && !collections.servers.get('', server)
  const placements = new Placements(services, presence, term)
  const scheduler = scheduleVms(services, placements)
  const pools = fillPools(services, placements)
  const unsubscribe = presence.subscribe(() => {
    scheduler.nudge()
    pools.nudge()
  })
  const loops = [
    // Started first, so that it sees the changes of the other controllers.
    recordEvents(services),
    scheduler,
    pools,
    driveRunners(services, presence, runnerWorld(services)),
    expireVms(services),
    expireRecords(services),
    trimEvents(services),
    markNodes(services, presence),
    collectNamespaces(services),
    settleCaptures(services),
    countUsage(services),
    pullImages(services, createPulls(services)),
    forgetLeftovers(services, () => forgetUploads(collections, isRemoved)),
    startController(services, 'renew-certificate', { everyMs: renewalCheckMs, run: () => certificates.renew() }),
    startController(services, 'maintain-signing-keys', { everyMs: keyCheckMs, run: () => signingKeys.maintain() }),
    ...(place.registry ? [collectContent(services, place)] : []),
  ]
  return async () => {
    unsubscribe()
    await Promise.all(loops.map((loop) => loop.stop()))
    placements.stop()
  }
}

export function startOwnLoops(server: Server, place: ImagePlace): readonly Loop[] {
  const { partialUploads, content, peers, legacyUsage, history, log } = server
  const later = (everyMs: number, run: () => Promise<void>) => ({ everyMs, isFirstLater: true, run })
  return [
    startController(server, 'expire-uploads', {
      everyMs: uploadCheckMs,
      run: async () => {
        const count = await partialUploads.expire()
        if (count > 0) log.info('removed abandoned uploads', { count })
      },
    }),
    startController(
      server,
      'store-legacy-usage',
      later(usageEveryMs, () => legacyUsage.flush()),
    ),
    startController(
      server,
      'store-charts',
      later(historyEveryMs, () => history.flush()),
    ),
    ...(place.registry ? [] : [collectContent(server, place)]),
    ...(peers && !place.registry ? [replicateImages(server, replicasIn(content, peers.servers))] : []),
  ]
}

/** In a folder, every server collects its own content. In a registry, the leader collects it for all. */
function collectContent(server: Server, { registry }: ImagePlace): Loop {
  const { collections, content, ownContent, uploads, runningCaptures } = server
  return collectImages(server, {
    content: registry
      ? collectableIn(registry, () => clusterUid(collections))
      : { collect: (manifests, options) => collect(ownContent, () => present(content, manifests()), options) },
    // On a shared store, missing content may be on a server that does not respond.
    isGone: async (digest) => !content.isShared && (await content.size(digest)) === undefined,
    sinceMs: () => Math.min(uploads.oldestStartMs(), runningCaptures.oldestStartMs()),
  })
}

const renewalCheckMs = 6 * 3_600_000
const keyCheckMs = 3_600_000
const uploadCheckMs = 5 * 60_000
/** A crash loses the counts of this time. */
const usageEveryMs = 15_000
const historyEveryMs = 60_000
