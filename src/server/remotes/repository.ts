// A remote that is a repository of an OCI registry: its tags are the images. Read without credentials.
import { RegistryError } from '../../oci/artifact/errors.ts'
import { inspectImage } from '../../oci/inspect.ts'
import type { RegistryOptions } from '../../oci/registry/exchange.ts'
import { openRegistry, type Registry } from '../../oci/registry/registry.ts'
import { waitingLine } from '../../oci/registry/waiting.ts'
import { forEachParallel } from '../../platform/parallel.ts'
import { retryPolicies } from '../../platform/retry.ts'
import { isImageName } from '../../rules/image-names.ts'
import { inTime, type RemoteAddress, RemoteError } from './http.ts'
import type { ListedItem, RemoteSource } from './source.ts'

const listMs = 15_000
const maxTags = 200
const parallelLookups = 4

const anywhere = { allowPrivate: true, allowLoopback: true }
const publicOnly = { allowPrivate: false, allowLoopback: false }

export function openRepository({ name: remote, url, allowInsecure, authorities }: RemoteAddress): RemoteSource {
  const named = url.hostname.replace(/^\[|\]$/g, '')
  const repository = url.pathname.replace(/^\/+|(?<!\/)\/+$/g, '')
  const connect = (more: Pick<RegistryOptions, 'retry' | 'idleMs' | 'onWaiting'>): Registry =>
    openRegistry({
      server: `${allowInsecure ? 'http' : 'https'}://${url.host}`,
      allowInsecure,
      // The administrator chose this host, so any address is allowed. Redirects may lead only to public addresses.
      policy: (host) => (host === named ? anywhere : publicOnly),
      ...(authorities && { ca: authorities.join('\n') }),
      hints: {
        untrusted: `Set caFile of remote ${remote} in config.json to the CA that signed the certificate`,
        plain: `Use https, or set allowInsecure of remote ${remote} in config.json`,
      },
      ...more,
    })
  const within = async <T>(registry: Registry, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error
      throw new RemoteError(`Remote "${remote}": ${error.message}`, error.isTransient, error)
    } finally {
      registry.close()
    }
  }

  return {
    async list(signal) {
      const registry = connect({ retry: retryPolicies.lookup, idleMs: listMs })
      const items: ListedItem[] = []
      const list = async (limited: AbortSignal): Promise<readonly ListedItem[]> => {
        const source = registry.repository(repository)
        const tags = (await source.tags(limited)).filter(isImageName).slice(0, maxTags)
        await forEachParallel(tags, parallelLookups, async (tag) => {
          const found = await inspectImage(source, tag, { architecture: 'arm64', signal: limited }).catch(ifNone)
          if (!found) return
          const { raw, architecture: type, storedBytes: bytes } = found
          items.push({ kind: 'image', name: tag, type, bytes, sha256: raw.digest.slice('sha256:'.length) })
        })
        return items.toSorted((one, other) => (one.name < other.name ? -1 : 1))
      }
      return inTime(`Remote "${remote}"`, listMs, signal, (limited) => within(registry, () => list(limited)))
    },

    fetch({ sha256 }, { takeFrom, waits }) {
      const registry = connect({ onWaiting: (waiting) => waits(waitingLine(waiting)) })
      return within(registry, () => takeFrom(registry.repository(repository), `sha256:${sha256}`))
    },
  }
}

/** A repository may have tags that are not images, and a tag may just have been deleted. */
function ifNone(error: unknown): undefined {
  if (!(error instanceof RegistryError && (error.fault === 'invalid' || error.fault === 'notFound'))) throw error
}
