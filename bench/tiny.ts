// The tiny guests as a driver is given them.
import path from 'node:path'
import { guestImage } from '../packages/tiny-guests/build.ts'
import type { Architecture } from '../src/api/architecture.ts'
import { machineDefaults } from '../src/api/vms/vm-shape.ts'
import type { VmSpec } from '../src/drivers/driver.ts'
import { seedTiny } from '../test/support/guests/guest.ts'
import { freePort } from '../test/support/tools/free-port.ts'
import { sized } from './measure.ts'

export const architectures = sized<readonly Architecture[]>(['amd64', 'arm64'], ['amd64'])

export async function tinyIn(folder: string, architecture: Architecture) {
  await seedTiny(folder, [architecture])
  const tiny = await guestImage(folder, `tiny-${architecture}`)
  if (!tiny) throw new Error(`there is no tiny-${architecture}`)
  const at = (name: string) => path.join(folder, `tiny-${architecture}`, name)
  const boot = { ...tiny.boot, kernel: at(tiny.boot.kernel), initrd: at(tiny.boot.initrd) }
  return { ...tiny, name: 'tiny', disk: at(tiny.disk), boot }
}

export async function specOf(
  image: VmSpec['image'],
  more: Pick<VmSpec, 'architecture' | 'cpu' | 'memoryMiB'> & Partial<VmSpec>,
): Promise<VmSpec & { readonly sshPort: number }> {
  const sshPort = await freePort()
  return {
    uid: crypto.randomUUID(),
    name: 'bench',
    image,
    forwards: [{ protocol: 'tcp', hostPort: sshPort, guestPort: 22 }],
    metadata: {},
    ...machineDefaults,
    ip: '127.0.0.1',
    ...more,
    sshPort,
  }
}
