// A VM for tests of drivers, and patience that ends.
import { machineDefaults } from '../../src/api/vms/vm-shape.ts'
import type { VmSpec } from '../../src/drivers/driver.ts'
import { freePort } from '../support/tools/free-port.ts'

export async function specify(
  test: {
    readonly architecture: VmSpec['architecture']
    image(folder: string, digest: string): Promise<VmSpec['image']>
  },
  root: string,
  change: Partial<VmSpec> = {},
): Promise<VmSpec> {
  return {
    uid: crypto.randomUUID(),
    name: 'vm-under-test',
    architecture: test.architecture,
    cpu: 1,
    memoryMiB: 64,
    image: await test.image(root, 'sha256:first'),
    ip: '127.0.0.1',
    forwards: [{ protocol: 'tcp', hostPort: await freePort(), guestPort: 22 }],
    metadata: {},
    ...machineDefaults,
    ...change,
  }
}

export async function within<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`nothing happened within ${limitMs} ms`)), limitMs)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
