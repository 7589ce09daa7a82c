// Assembles what serves nodes and requests that wait for VMs: streams, presence, tunnels, waits.
import type { Secrets } from '../../auth/secrets.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Collections } from '../../store/records/collections.ts'
import { markNode } from '../../store/records/node-states.ts'
import type { Store } from '../../store/store.ts'
import type { Peers } from '../cluster/server-calls.ts'
import { ImageUses } from '../images/uses.ts'
import { SyncQueue } from './admission.ts'
import { sendCaches } from './cache.ts'
import { type GrowthCredentials, sendDesired } from './desired.ts'
import { Fleet } from './fleet.ts'
import { createNodeRelay, localNodeRelay, type NodeRelay } from './node-relay.ts'
import { ownPresence, type PresenceTracker, SharedPresence } from './presence.ts'
import { Tunnels } from './tunnels.ts'
import { Waits } from './waits.ts'

interface FleetInput {
  readonly collections: Collections
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
}

/** For servers that share their store. */
interface SharedServices {
  readonly peers: Peers
  readonly store: Pick<Store, 'reached'>
}

export function createFleetServices(services: FleetInput, shared?: SharedServices) {
  const { collections, clock, log } = services
  const { vms, nodes } = collections
  const fleet = new Fleet()
  const growth: GrowthCredentials = new Map()
  const waits = new Waits(vms.view)
  const imageUses = new ImageUses(vms.view, ({ shape }) => shape.image)
  const isoUses = new ImageUses(vms.view, ({ shape }) => shape.iso)
  const far = shared && new SharedPresence({ ...shared, clock, collections, fleet, servers: shared.peers.servers, log })
  const presence: PresenceTracker = far ?? ownPresence(fleet)
  const nodeRelay: NodeRelay = shared
    ? createNodeRelay({ id: shared.peers.servers.id, fleet, presence, calls: shared.peers.calls, log })
    : localNodeRelay(fleet)
  const stops = [
    sendDesired({ ...services, fleet, growth }),
    sendCaches(collections, fleet),
    fleet.subscribe((name, _, silentMs) => {
      const node = nodes.get('', name)?.value
      if (silentMs === undefined || !node) return
      log.info('node is not responding', { node: name })
      const now = clock.now()
      const seenAt = timestamp(new Date(now.getTime() - silentMs))
      const isOpen = (each: string): boolean => presence.isOpen(each)
      const state = { isReady: false, at: timestamp(now), seenAt, isOpen }
      // If this fails, the leader does it.
      void markNode(collections, node, state).catch((error: unknown) =>
        log.debug('a node that is not responding could not be marked', { node: name, problem: String(error) }),
      )
    }),
    // The stream of a removed node ends, whichever server removed it.
    nodes.view.subscribe((changes) => {
      for (const change of changes) {
        const before = change.previous?.value
        const isSame = change.type === 'put' && change.entry.value.uid === before?.uid
        if (before && !isSame) fleet.drop(before.name)
      }
    }),
    vms.view.subscribe((changes) => {
      if (growth.size === 0) return
      for (const change of changes) {
        const record = change.type === 'put' ? change.entry.value : undefined
        const held = record && growth.get(record.uid)
        if (held && record.observed.generation >= held.generation) growth.delete(record.uid)
      }
    }),
  ]
  return {
    fleet,
    presence,
    nodeRelay,
    admission: new SyncQueue(),
    tunnels: new Tunnels(nodeRelay),
    growth,
    waits,
    imageUses,
    isoUses,
    [Symbol.asyncDispose]: async () => {
      for (const stop of stops) stop()
      waits.stop()
      imageUses.stop()
      isoUses.stop()
      fleet.dropAll()
      await nodeRelay.stop()
      await far?.leave()
      far?.stop()
    },
  }
}
