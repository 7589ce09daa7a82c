// The small Linux image that comes with svc3, as a record: nodes build it themselves, from Debian's packages, at the first
// use. `svc3 dev` lists it from the start, `svc3 image demo` adds it to a cluster.
import type { Architecture } from '../../api/architecture.ts'
import type { ImageRecord } from './fleet-records.ts'

type DemoImage = Pick<ImageRecord, 'name' | 'description' | 'architecture' | 'sizeBytes' | 'os' | 'recipe'>

export const demoImage = (architecture: Architecture): DemoImage => ({
  name: `tiny-${architecture}`,
  description: 'A small Linux to try things with: admin / admin',
  architecture,
  sizeBytes: 2 ** 30,
  os: 'linux',
  recipe: `tiny-${architecture}`,
})
