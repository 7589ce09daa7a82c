// Sends chunks to a registry while others are being packed. The copy that follows sends the rest. Packing ends if the registry
// refuses a chunk for good.
import type { ContentStore } from '../images/content/content.ts'
import { RegistryError } from './artifact/errors.ts'
import type { Destination } from './artifact/target.ts'

export interface Forwarding {
  /** Pack into this store. It throws once the destination has refused a chunk for good. */
  readonly store: ContentStore
  /** Digests that the destination has. */
  readonly there: ReadonlySet<string>
  /** Resolves when nothing is being sent. Never rejects. */
  idle(): Promise<void>
}

interface ForwardOptions {
  readonly signal?: AbortSignal | undefined
  readonly onSent?: ((bytes: number) => void) | undefined
}

/** High, because most of the time is spent waiting for the registry's disk. */
const concurrency = 6

export function forwardTo(destination: Destination, store: ContentStore, options: ForwardOptions = {}): Forwarding {
  const { signal, onSent } = options
  const queue: { readonly digest: string; readonly bytes: number }[] = []
  const known = new Set<string>()
  const there = new Set<string>()
  const running = new Set<Promise<void>>()
  let sentBytes = 0
  let isFailed = false
  let refusal: RegistryError | undefined

  async function sendQueued(): Promise<void> {
    for (let next = queue.shift(); next && !isFailed; next = queue.shift()) {
      const { digest, bytes } = next
      const blob = { mediaType: 'application/octet-stream', digest, size: bytes }
      const open = (offset: number) => store.open(digest, { start: offset, end: bytes })
      if (!(await destination.has(blob, signal)) && (await destination.put(blob, { open }, { signal })))
        sentBytes += bytes
      there.add(digest)
      onSent?.(sentBytes)
    }
  }

  function startWorker(): void {
    const worker: Promise<void> = sendQueued()
      .catch((error: unknown) => {
        isFailed = true
        if (error instanceof RegistryError && !error.isTransient) refusal ??= error
      })
      .finally(() => running.delete(worker))
    running.add(worker)
  }

  return {
    there,
    store: {
      ...store,
      async put(content, putOptions = {}) {
        if (refusal) throw refusal
        const stored = await store.put(content, putOptions)
        if (isFailed || known.has(stored.digest)) return stored
        known.add(stored.digest)
        queue.push(stored)
        if (running.size < concurrency) startWorker()
        return stored
      },
    },
    idle: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
