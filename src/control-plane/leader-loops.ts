// The loops that run on one server at a time: on the leader, where several share a store.
import { collectNamespaces } from '../controllers/collect-namespaces.ts'
import { expireAnswers } from '../controllers/expire-answers.ts'
import { expireEvents } from '../controllers/expire-events.ts'
import { expireLogins } from '../controllers/expire-logins.ts'
import { expirePushJobs } from '../controllers/expire-push-jobs.ts'
import { expireVms } from '../controllers/expire-vms.ts'
import { forgetLeftovers } from '../controllers/forget-leftovers.ts'
import { markNodes } from '../controllers/mark-nodes.ts'
import { pullImages } from '../controllers/pull-images.ts'
import { scheduleVms } from '../controllers/schedule-vms.ts'
import { settleCaptures } from '../controllers/settle-captures.ts'
import type { Loop } from '../platform/loop.ts'
import { forgetUploads } from '../server/images/store.ts'
import { createPulls } from '../server/remotes/image-pulls.ts'
import type { Server } from './assemble.ts'

/** Begins them, with some more; returns how to end all. */
export function startLeaderLoops(services: Server, more: readonly Loop[]): () => Promise<void> {
  const { presence, peers, collections } = services
  const isGone = (server: string | undefined): boolean =>
    peers !== undefined && server !== undefined && !collections.servers.get('', server)
  const scheduler = scheduleVms(services, presence)
  const unsubscribe = presence.subscribe(() => scheduler.nudge())
  const loops = [
    scheduler,
    expireVms(services),
    expirePushJobs(services),
    markNodes(services, presence),
    expireAnswers(services),
    expireEvents(services),
    expireLogins(services),
    collectNamespaces(services),
    settleCaptures(services),
    pullImages(services, createPulls(services)),
    forgetLeftovers(services, () => forgetUploads(collections, isGone)),
    ...more,
  ]
  return async () => {
    unsubscribe()
    await Promise.all(loops.map((loop) => loop.stop()))
  }
}
