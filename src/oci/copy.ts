// Push and pull: one copy between two targets. Blobs go several at once, those that are there are skipped, and the
// manifest comes last, so that nothing is visible before all of it is there. Can be done again at any time: it goes on.
import { setMaxListeners } from 'node:events'
import { failpoint } from '../platform/failpoint.ts'
import { eachAtOnce } from '../platform/parallel.ts'
import { RegistryError } from './artifact/errors.ts'
import type { Descriptor } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource, BlobContent, Destination } from './artifact/target.ts'

interface From {
  readonly target: ArtifactSource
  readonly reference: string
}

interface To {
  readonly target: Destination
  /** Without one, a registry keeps it by its digest alone. */
  readonly reference?: string | undefined
}

interface CopyProgress {
  readonly bytesTotal: number
  /** What is there now, whether it was sent or was there before. */
  readonly bytesDone: number
  /** Of these, what was there before. */
  readonly bytesSkipped: number
  readonly blobsTotal: number
  readonly blobsDone: number
}

export interface CopyOptions extends ResolveOptions {
  /** Blobs at once. */
  readonly concurrency?: number | undefined
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined
  /** Digests of what the destination is known to have, because it was sent just now: not looked for again. */
  readonly there?: ReadonlySet<string> | undefined
  /** All of it is there but the manifest: the last moment to throw. */
  readonly beforeFinish?: (() => Promise<void>) | undefined
}

interface Copied {
  /** Of the OCI manifest at the source. */
  readonly sourceDigest: string
  /** Under which the destination has it: the same in a registry, that of our own manifest in an image store. */
  readonly digest: string
  readonly progress: CopyProgress
}

const defaultConcurrency = 4

export async function copy(from: From, to: To, options: CopyOptions = {}): Promise<Copied> {
  const { concurrency = defaultConcurrency, onProgress, there } = options
  // When one blob fails for good, the others need not come to their end.
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  setMaxListeners(0, signal)
  const source = from.target
  const manifest = await resolveManifest(source, from.reference, { ...options, signal })
  const blobs = await to.target.plan(manifest, (blob) => source.read(blob, signal))
  const count = counter(blobs, onProgress)
  const each = (all: readonly Descriptor[], work: (blob: Descriptor) => Promise<void>): Promise<void> =>
    eachAtOnce(all, concurrency, async (blob) => {
      try {
        signal.throwIfAborted()
        await work(blob)
      } catch (error) {
        stop.abort(error)
        throw error
      }
    })
  const contentOf = (blob: Descriptor): BlobContent => ({
    open: (offset) => source.open(blob, { offset, signal, isUnchecked: true }),
  })
  await each(blobs, async (blob) => {
    if (there?.has(blob.digest) || (await to.target.has(blob, signal))) return count.skipped(blob)
    const onPosition = (bytes: number): void => count.reached(blob, bytes)
    if (await to.target.put(blob, contentOf(blob), { signal, onPosition })) count.sent(blob)
    else count.skipped(blob)
    failpoint('oci.copy.blob')
  })
  await options.beforeFinish?.()
  signal.throwIfAborted()
  failpoint('oci.copy.finish')
  const finish = () => to.target.finish(manifest, to.reference, signal)
  const digest = await finish().catch(async (error: unknown) => {
    // What was sent may be gone since, with a registry that was put back to what it had before, or tidied up.
    const doubtful = blobs.filter((blob) => there?.has(blob.digest))
    if (doubtful.length === 0 || !(error instanceof RegistryError) || error.isTransient) throw error
    await each(doubtful, async (blob) => {
      if (!(await to.target.has(blob, signal))) await to.target.put(blob, contentOf(blob), { signal })
    })
    return await finish()
  })
  return { sourceDigest: manifest.digest, digest, progress: count.progress() }
}

function counter(blobs: readonly Descriptor[], tell: CopyOptions['onProgress']) {
  const bytesTotal = blobs.reduce((sum, { size }) => sum + size, 0)
  const underWay = new Map<string, number>()
  let settledBytes = 0
  let bytesSkipped = 0
  let blobsDone = 0
  const progress = (): CopyProgress => {
    let bytesDone = settledBytes
    for (const bytes of underWay.values()) bytesDone += bytes
    return { bytesTotal, bytesDone, bytesSkipped, blobsTotal: blobs.length, blobsDone }
  }
  const settle = ({ digest, size }: Descriptor) => {
    underWay.delete(digest)
    settledBytes += size
    blobsDone += 1
    tell?.(progress())
  }
  tell?.(progress())
  return {
    progress,
    sent: settle,
    skipped(blob: Descriptor) {
      bytesSkipped += blob.size
      settle(blob)
    },
    reached({ digest }: Descriptor, bytes: number) {
      underWay.set(digest, bytes)
      tell?.(progress())
    },
  }
}
