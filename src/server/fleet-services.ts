// What serves nodes and those who wait for their VMs, put together once: streams, tunnels, wishes, waits.
import { Fleet } from './fleet.ts'
import { ImageUses } from './image-uses.ts'
import { sendCaches } from './node-cache.ts'
import type { Services } from './services.ts'
import { Tunnels } from './tunnels.ts'
import { Waits } from './waits.ts'
import { sendWishes } from './wishes.ts'

export type FleetServices = Pick<Services, 'fleet' | 'tunnels' | 'growth' | 'waits' | 'imageUses' | 'isoUses'>

export function createFleetServices(
  services: Pick<Services, 'collections' | 'secrets' | 'log'>,
): FleetServices & Disposable {
  const { vms } = services.collections
  const fleet = new Fleet()
  const growth: Services['growth'] = new Map()
  const waits = new Waits(vms.view)
  const imageUses = new ImageUses(vms.view, ({ shape }) => shape.image)
  const isoUses = new ImageUses(vms.view, ({ shape }) => shape.iso)
  const stopWishes = sendWishes({ ...services, fleet, growth })
  const stopCaches = sendCaches(services.collections, fleet)
  return {
    fleet,
    tunnels: new Tunnels(fleet),
    growth,
    waits,
    imageUses,
    isoUses,
    [Symbol.dispose]: () => {
      stopWishes()
      stopCaches()
      waits.stop()
      imageUses.stop()
      isoUses.stop()
      fleet.close()
    },
  }
}
