// A VM for tests of drivers, a port that it may have, and patience that ends.
import net from 'node:net'
import type { VmSpec } from '../../src/drivers/driver.ts'

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
    netBoost: true,
    legacyIO: false,
    ...change,
  }
}

/** Below the range that the system hands out by itself, so that no client's own port is in the way. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000)
    if (await bindOnce(port).then(() => true, () => false)) return port // biome-ignore format: one thought
  }
}

export function bindOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve()))
  })
}

export async function within<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`nothing happened within ${limitMs} ms`)), limitMs)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
