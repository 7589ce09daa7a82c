// Sends chunks while others are still being packed: a store that passes on what is put into it, out of memory where it
// still is there. Only a head start: the copy that follows sends what is missing. What can never be sent ends the packing.
import type { ContentStore, PutOptions } from '../images/content.ts'
import { RegistryError } from './errors.ts'
import type { Destination } from './target.ts'

export interface Forwarding {
  /** For packing into. Refuses what is put into it once the destination has refused something for good. */
  readonly store: ContentStore
  /** What the destination has: digests of what was sent, or found there. */
  readonly there: ReadonlySet<string>
  /** Until everything is sent that can be; never fails. */
  idle(): Promise<void>
}

export interface ForwardOptions {
  /** Most of the time of one is waiting until the registry has it on its disk. */
  readonly concurrency?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Bytes sent so far. */
  readonly onSent?: ((bytes: number) => void) | undefined
}

interface Chunk {
  readonly digest: string
  readonly size: number
  /** Still in memory; otherwise the store has them. */
  readonly bytes?: Buffer
}

/**
 * Where so many in a row were not there, only every so manieth is looked for any more: what was just packed is new as a
 * rule, and each look costs the registry as much as a fifth of a chunk. One that is there after all ends that.
 */
const missesToTrust = 8

export function forwardTo(destination: Destination, store: ContentStore, options: ForwardOptions = {}): Forwarding {
  const { concurrency = 6, signal, onSent } = options
  const waiting: Chunk[] = []
  const known = new Set<string>()
  const there = new Set<string>()
  const running = new Set<Promise<void>>()
  let sentBytes = 0
  let misses = 0
  let unlooked = 0
  let isFailed = false
  let refusal: RegistryError | undefined

  async function isThere(blob: Parameters<Destination['has']>[0]): Promise<boolean> {
    if (misses >= missesToTrust && ++unlooked % missesToTrust !== 0) return false
    const found = await destination.has(blob, signal)
    misses = found ? 0 : misses + 1
    return found
  }

  async function send({ digest, size, bytes }: Chunk): Promise<void> {
    const blob = { mediaType: 'application/octet-stream', digest, size }
    if (!(await isThere(blob))) {
      const open = (offset: number) =>
        bytes ? inMemory(bytes.subarray(offset)) : store.open(digest, { start: offset, end: size })
      if (await destination.put(blob, { open }, { signal })) sentBytes += size
    }
    there.add(digest)
    onSent?.(sentBytes)
  }

  const run = (work: () => Promise<void>): Promise<void> => {
    const job: Promise<void> = work()
      .catch((error: unknown) => {
        isFailed = true
        if (error instanceof RegistryError && !error.isTransient) refusal ??= error
      })
      .finally(() => running.delete(job))
    running.add(job)
    return job
  }

  async function sendWaiting(): Promise<void> {
    for (let next = waiting.shift(); next && !isFailed; next = waiting.shift()) await send(next)
  }

  /** At once, out of memory, beside storing it; or later out of the store, where too many are on their way. */
  function startNow(bytes: Uint8Array, digest: string, { retain }: PutOptions): boolean {
    if (running.size >= concurrency) return false
    const release = retain?.()
    if (!release) return false
    known.add(digest)
    const chunk = { digest, size: bytes.length, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) }
    void run(async () => {
      await send(chunk).finally(release)
      await sendWaiting()
    })
    return true
  }

  return {
    there,
    store: {
      ...store,
      async put(content, putOptions = {}) {
        if (refusal) throw refusal
        const { digest } = putOptions
        const isNew = (each: string): boolean => !isFailed && !known.has(each)
        if (content instanceof Uint8Array && digest !== undefined && isNew(digest))
          startNow(content, digest, putOptions)
        const stored = await store.put(content, putOptions)
        if (!isNew(stored.digest)) return stored
        known.add(stored.digest)
        waiting.push({ digest: stored.digest, size: stored.bytes })
        if (running.size < concurrency) void run(sendWaiting)
        return stored
      },
    },
    idle: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

async function* inMemory(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
