// The Linux images that come with svc3. Nodes build them from Debian's packages at the first use. `svc3 dev` lists them
// from the start, and `svc3 image demo` adds them to a cluster.
import type { Architecture } from '../../api/architecture.ts'
import type { BuiltInImage } from '../../api/images/built-in-images.ts'
import type { ImageRecord } from './fleet-records.ts'

type DemoImage = Pick<ImageRecord, 'name' | 'description' | 'architecture' | 'sizeBytes' | 'os' | 'recipe'>

const descriptions = {
  tiny: 'A tiny Linux to try things with: admin / admin',
  small: 'Linux with bash, scp, rsync, curl, git: admin / admin',
} as const satisfies Record<BuiltInImage, string>

export const demoImage = (image: BuiltInImage, architecture: Architecture): DemoImage => ({
  name: `${image}-${architecture}`,
  description: descriptions[image],
  architecture,
  sizeBytes: 2 ** 30,
  os: 'linux',
  recipe: `${image}-${architecture}`,
})
