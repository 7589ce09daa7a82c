// Sends chunks while others are still being packed: a store that passes on what is put into it. Only a head start: the
// copy that follows looks for everything, sends what is missing, and says what went wrong.
import type { ContentStore } from '../images/content.ts'
import type { Destination } from './target.ts'

export interface Forwarding {
  /** For packing into. */
  readonly store: ContentStore
  /** Until everything is sent that can be; never fails. */
  idle(): Promise<void>
}

export interface ForwardOptions {
  readonly concurrency?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Bytes sent so far. */
  readonly onSent?: ((bytes: number) => void) | undefined
}

export function forwardTo(destination: Destination, store: ContentStore, options: ForwardOptions = {}): Forwarding {
  const { concurrency = 2, signal, onSent } = options
  const waiting: { readonly digest: string; readonly bytes: number }[] = []
  const known = new Set<string>()
  const running = new Set<Promise<void>>()
  let sentBytes = 0
  let isFailed = false

  async function send(digest: string, size: number): Promise<void> {
    const blob = { mediaType: 'application/octet-stream', digest, size }
    if (await destination.has(blob, signal)) return
    const content = { open: (offset: number) => store.open(digest, { start: offset, end: size }) }
    if (await destination.put(blob, content, { signal })) sentBytes += size
    onSent?.(sentBytes)
  }

  async function work(): Promise<void> {
    for (let next = waiting.shift(); next && !isFailed; next = waiting.shift()) {
      await send(next.digest, next.bytes).catch(() => {
        isFailed = true
      })
    }
  }

  return {
    store: {
      ...store,
      async put(content, putOptions) {
        const stored = await store.put(content, putOptions)
        if (isFailed || known.has(stored.digest)) return stored
        known.add(stored.digest)
        waiting.push(stored)
        if (running.size < concurrency) {
          const job: Promise<void> = work().finally(() => running.delete(job))
          running.add(job)
        }
        return stored
      },
    },
    idle: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
