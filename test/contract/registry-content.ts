// Content in Debian's docker-registry, for tests: opened as often as wanted, each time as by another server.
import fs from 'node:fs/promises'
import path from 'node:path'
import { type ContentCache, openContentCache } from '../../src/oci/content/cache.ts'
import { openRegistryContent, type RegistryContent } from '../../src/oci/content/store.ts'
import { openRegistry, type Repository } from '../../src/oci/registry/registry.ts'
import { type Log, silentLog } from '../../src/platform/log.ts'
import type { RegistryProcess } from '../support/processes/registry.ts'

interface RegistryContentRig extends Disposable {
  readonly repository: Repository
  readonly cache: ContentCache
  readonly store: RegistryContent
}

export interface RigOptions {
  readonly repository: string
  /** Each gets a new folder, unless one is given. */
  readonly folder?: string
  readonly cacheBytes?: number
  readonly now?: () => number
  readonly log?: Log
}

const retry = { attempts: 2, firstDelayMs: 10, maxDelayMs: 10, maxRetryAfterMs: 10 }
let count = 0

export async function registryContent(
  { server, folder: place }: Pick<RegistryProcess, 'server' | 'folder'>,
  { repository: name, cacheBytes = 2 ** 30, log = silentLog, ...options }: RigOptions,
): Promise<RegistryContentRig> {
  const policy = { allowPrivate: true, allowLoopback: true }
  const registry = openRegistry({ server, allowInsecure: true, policy, retry })
  const repository = registry.repository(name)
  const folder = options.folder ?? path.join(place, `cache-${++count}`)
  await fs.mkdir(folder, { recursive: true })
  const failed = (error: unknown): never => {
    throw error
  }
  const cache = await openContentCache({ folder, maxBytes: cacheBytes, failed })
  const store = openRegistryContent({ repository, cache, log, ...(options.now && { now: options.now }) })
  return { repository, cache, store, [Symbol.dispose]: () => registry.close() }
}
