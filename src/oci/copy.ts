// Push and pull: copies an image between two targets. Existing blobs are skipped and the manifest comes last, so that
// an incomplete image is never visible. A repeated copy resumes.
import { setMaxListeners } from 'node:events'
import { failpoint } from '../platform/failpoint.ts'
import { forEachParallel } from '../platform/parallel.ts'
import { RegistryError } from './artifact/errors.ts'
import type { Descriptor } from './artifact/oci-manifest.ts'
import { type ResolveOptions, resolveManifest } from './artifact/resolve.ts'
import type { ArtifactSource, BlobContent, Destination } from './artifact/target.ts'

interface CopySource {
  readonly target: ArtifactSource
  readonly reference: string
}

interface CopyDestination {
  readonly target: Destination
  /** Without it, a registry stores the image by its digest only. */
  readonly reference?: string | undefined
}

interface CopyProgress {
  readonly bytesTotal: number
  /** Includes what was skipped. */
  readonly bytesDone: number
  /** What the destination had before. */
  readonly bytesSkipped: number
  readonly blobsTotal: number
  readonly blobsDone: number
}

export interface CopyOptions extends ResolveOptions {
  /** How many blobs are copied in parallel. */
  readonly concurrency?: number | undefined
  readonly onProgress?: ((progress: CopyProgress) => void) | undefined
  /** Digests of blobs that were just sent, and need not be looked up. */
  readonly there?: ReadonlySet<string> | undefined
  /** Called when only the manifest is missing. May throw to end the copy. */
  readonly beforeFinish?: (() => Promise<void>) | undefined
}

interface CopyResult {
  /** The digest at the destination. In an image store it is the one of svc3's manifest. */
  readonly digest: string
  readonly progress: CopyProgress
}

const defaultConcurrency = 4

export async function copy(from: CopySource, to: CopyDestination, options: CopyOptions = {}): Promise<CopyResult> {
  const { concurrency = defaultConcurrency, onProgress, there } = options
  // One failed blob ends the others.
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  setMaxListeners(0, signal)
  const source = from.target
  const manifest = await resolveManifest(source, from.reference, { ...options, signal })
  const blobs = await to.target.plan(manifest, (blob) => source.read(blob, signal))
  const count = counter(blobs, onProgress)
  const each = (all: readonly Descriptor[], work: (blob: Descriptor) => Promise<void>): Promise<void> =>
    forEachParallel(all, concurrency, async (blob) => {
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
    // Blobs in `there` may be deleted by now, if the registry was restored from a backup or cleaned up.
    const unconfirmed = blobs.filter((blob) => there?.has(blob.digest))
    if (unconfirmed.length === 0 || !(error instanceof RegistryError) || error.isTransient) throw error
    await each(unconfirmed, async (blob) => {
      if (!(await to.target.has(blob, signal))) await to.target.put(blob, contentOf(blob), { signal })
    })
    return await finish()
  })
  return { digest, progress: count.progress() }
}

function counter(blobs: readonly Descriptor[], tell: CopyOptions['onProgress']) {
  const bytesTotal = blobs.reduce((sum, { size }) => sum + size, 0)
  const sending = new Map<string, number>()
  let settledBytes = 0
  let bytesSkipped = 0
  let blobsDone = 0
  const progress = (): CopyProgress => {
    let bytesDone = settledBytes
    for (const bytes of sending.values()) bytesDone += bytes
    return { bytesTotal, bytesDone, bytesSkipped, blobsTotal: blobs.length, blobsDone }
  }
  const settle = ({ digest, size }: Descriptor) => {
    sending.delete(digest)
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
      sending.set(digest, bytes)
      tell?.(progress())
    },
  }
}
