// What serves nodes and those who wait for their VMs, put together once: streams, presence, tunnels, waits.
import { timestamp } from '../../platform/clock.ts'
import { markNode } from '../../store/records/node-states.ts'
import type { Store } from '../../store/store.ts'
import { ImageUses } from '../images/uses.ts'
import type { Peers, Services } from '../services.ts'
import { sendCaches } from './cache.ts'
import { sendDesired } from './desired.ts'
import { Fleet } from './fleet.ts'
import { createFarNodes, noFarNodes } from './node-relay.ts'
import { ownPresence, SharedPresence } from './presence.ts'
import { Tunnels } from './tunnels.ts'
import { Waits } from './waits.ts'

export type FleetServices = Pick<
  Services,
  'fleet' | 'presence' | 'farNodes' | 'tunnels' | 'growth' | 'waits' | 'imageUses' | 'isoUses'
>

/** Where other servers work on the same records. */
export interface Shared {
  readonly peers: Peers
  readonly store: Pick<Store, 'watch'>
}

export function createFleetServices(
  services: Pick<Services, 'collections' | 'secrets' | 'clock' | 'log'>,
  shared?: Shared,
): FleetServices & AsyncDisposable {
  const { collections, clock, log } = services
  const { vms, nodes } = collections
  const fleet = new Fleet()
  const growth: Services['growth'] = new Map()
  const waits = new Waits(vms.view)
  const imageUses = new ImageUses(vms.view, ({ shape }) => shape.image)
  const isoUses = new ImageUses(vms.view, ({ shape }) => shape.iso)
  const far = shared && new SharedPresence({ ...shared, clock, collections, fleet, servers: shared.peers.servers, log })
  const presence = far ?? ownPresence(fleet)
  const farNodes = shared
    ? createFarNodes({ id: shared.peers.servers.id, fleet, presence, calls: shared.peers.calls, log })
    : noFarNodes(fleet)
  const stops = [
    sendDesired({ ...services, fleet, growth }),
    sendCaches(collections, fleet),
    fleet.subscribe((name, _, isSilent) => {
      const node = isSilent ? nodes.get('', name)?.value : undefined
      if (!node) return
      log.info('a node does not answer', { node: name })
      const state = { isReady: false, at: timestamp(clock.now()), isOpen: (each: string) => presence.isOpen(each) }
      // What the store does not take now, the leader writes.
      void markNode(collections, node, state).catch((error: unknown) =>
        log.debug('a silent node is still ready in its record', { node: name, problem: String(error) }),
      )
    }),
    // Whichever server a node was removed by: it is not one any more.
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
    farNodes,
    tunnels: new Tunnels(farNodes),
    growth,
    waits,
    imageUses,
    isoUses,
    [Symbol.asyncDispose]: async () => {
      for (const stop of stops) stop()
      waits.stop()
      imageUses.stop()
      isoUses.stop()
      fleet.close()
      await farNodes.stop()
      await far?.leave()
      far?.stop()
    },
  }
}
