// A remote that is a repository of an OCI registry: its tags are the images. Read without credentials.
import { RegistryError } from '../../oci/artifact/errors.ts'
import { inspectImage } from '../../oci/inspect.ts'
import type { RegistryOptions } from '../../oci/registry/exchange.ts'
import { waitingLine } from '../../oci/registry/patience.ts'
import { openRegistry, type Registry } from '../../oci/registry/registry.ts'
import { eachAtOnce } from '../../platform/parallel.ts'
import { isImageName } from '../../rules/image-names.ts'
import { type RemoteAddress, RemoteError } from './http.ts'
import type { ListedItem, RemoteSource } from './source.ts'

const listMs = 15_000
const maxTags = 200
const looksAtOnce = 4
const retry = { attempts: 3, firstDelayMs: 250, maxDelayMs: 1_000, maxRetryAfterMs: 1_000 }

const anywhere = { allowPrivate: true, allowLoopback: true }
const publicOnly = { allowPrivate: false, allowLoopback: false }

export function openRepository({ name: remote, url, allowInsecure, authorities }: RemoteAddress): RemoteSource {
  const named = url.hostname.replace(/^\[|\]$/g, '')
  const repository = url.pathname.replace(/^\/+|(?<!\/)\/+$/g, '')
  const connect = (more: Pick<RegistryOptions, 'retry' | 'idleMs' | 'onWaiting'>): Registry =>
    openRegistry({
      server: `${allowInsecure ? 'http' : 'https'}://${url.host}`,
      allowInsecure,
      // An administrator has named this host, so it may be anywhere. Where it leads to, nobody has named.
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
      const registry = connect({ retry, idleMs: listMs })
      const limit = AbortSignal.timeout(listMs)
      const either = AbortSignal.any([signal, limit])
      const items: ListedItem[] = []
      return within(registry, async () => {
        const source = registry.repository(repository)
        const tags = (await source.tags(either)).filter(isImageName).slice(0, maxTags)
        await eachAtOnce(tags, looksAtOnce, async (tag) => {
          const found = await inspectImage(source, tag, { architecture: 'arm64', signal: either }).catch(ifNone)
          if (!found) return
          const { raw, architecture: type, storedBytes: bytes } = found
          items.push({ kind: 'image', name: tag, type, bytes, sha256: raw.digest.slice('sha256:'.length) })
        })
        return items.toSorted((one, other) => (one.name < other.name ? -1 : 1))
      }).catch((error: unknown) => {
        signal.throwIfAborted()
        if (limit.aborted) throw new RemoteError(`Remote "${remote}" took more than ${listMs / 1_000} s`, true)
        throw error
      })
    },

    fetch({ sha256 }, { takeFrom, waits }) {
      const registry = connect({ onWaiting: (waiting) => waits(waitingLine(waiting)) })
      return within(registry, () => takeFrom(registry.repository(repository), `sha256:${sha256}`))
    },
  }
}

/** Other things may be in the repository, and a tag may go in this moment. */
function ifNone(error: unknown): undefined {
  if (!(error instanceof RegistryError && (error.fault === 'invalid' || error.fault === 'notFound'))) throw error
}
