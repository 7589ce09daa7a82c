// Sends an image to an OCI registry, straight from this node: what the registry lacks, and the manifest last. Cut off, the
// next try sends the rest. Credentials are asked for when they are needed, and kept nowhere.
import type { RegistryLogin } from '../../api/nodes/captures.ts'
import type { PushFormat } from '../../api/records.ts'
import type { ContentStore } from '../../images/content/content.ts'
import { type Annotations, annotationsOf } from '../../oci/artifact/annotations.ts'
import { imageSource } from '../../oci/artifact/image-target.ts'
import type { ArtifactSource } from '../../oci/artifact/target.ts'
import { copy } from '../../oci/copy.ts'
import { type Forwarding, forwardTo } from '../../oci/forward.ts'
import { openRegistry, type Repository } from '../../oci/registry/registry.ts'
import type { OnWaiting, RetryNotice } from '../../oci/registry/waiting.ts'
import { tartSource } from '../../oci/tart/write.ts'
import type { RetryPolicy } from '../../platform/retry.ts'
import { type ImageReference, parseImageReference } from '../../rules/image-reference.ts'
import type { CaptureProgress } from './server.ts'

export interface PushTarget {
  /** `<registry_host>/<repository>/<image>:TAG` */
  readonly reference: string
  /** What the VM was deployed from, where that is in a registry: what is there already is not sent. */
  readonly from: { /** `host/repository@sha256:…` */ readonly pinned: string; readonly name: string } | undefined
  /** When it was requested. */
  readonly createdAt?: string | undefined
  readonly login: RegistryLogin
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

/** What a push has sent while it was being packed. */
export interface Sent {
  /** They count as sent, not as skipped. */
  readonly bytes: number
  /** Digests of what the registry has. */
  readonly there: ReadonlySet<string>
}

export interface PushOptions {
  /** What was sent before, in this very push. */
  readonly sent: Sent | undefined
  readonly store: ContentStore
  readonly format: PushFormat | undefined
  /** Nobody else packs anything: what was made for this push alone may go. */
  isAlone(): Promise<boolean>
  readonly signal: AbortSignal
  progress(progress: CaptureProgress): void
  /** Throws when it is no longer desired: asked before anything becomes visible. */
  confirm(): Promise<void>
}

/** Returns the digest of the manifest in the registry. */
export async function push(content: string, target: PushTarget, options: PushOptions): Promise<string> {
  const { store, sent, signal, progress } = options
  let far: CaptureProgress = { percent: 0, bytes: 0 }
  using place = openTarget(target, {
    onWaiting: (waiting) => progress({ ...far, ...(waiting && { waiting }) }),
  })
  const { annotations } = place
  await using source =
    options.format === 'tart'
      ? sourceForTart(options, annotations)
      : { target: imageSource(store, annotations), ...nothingMade }
  const { digest } = await copy(
    { target: source.target, reference: content },
    { target: place.repository, reference: place.tag },
    {
      signal,
      there: sent?.there,
      beforeFinish: options.confirm,
      onProgress: ({ bytesTotal, bytesDone, bytesSkipped }) => {
        far = {
          percent: bytesTotal === 0 ? 0 : Math.min(99, (100 * bytesDone) / bytesTotal),
          bytes: bytesDone,
          phase: 'sending',
          bytesTotal,
          bytesSkipped: Math.max(0, bytesSkipped - (sent?.bytes ?? 0)),
        }
        progress(far)
      },
    },
  )
  return digest
}

const nothingMade: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined }

/** Its layers have to be made before they can be sent: they take room until the push is over. */
function sourceForTart(
  { store, isAlone, signal, progress }: PushOptions,
  annotations: Annotations,
): AsyncDisposable & { target: ArtifactSource } {
  const target = tartSource(store, {
    annotations,
    signal,
    onProgress: ({ bytes, of }) =>
      progress({ percent: 0, bytes: 0, phase: `packing for tart, ${Math.floor((100 * bytes) / of)} %` }),
  })
  return {
    target,
    async [Symbol.asyncDispose]() {
      const beforeMs = Date.now()
      if (await isAlone()) for (const digest of target.made) await store.deleteUnused(digest, beforeMs)
    },
  }
}

interface HeadStart {
  through(store: ContentStore): ContentStore
  /** Until what was passed on is sent. Never fails: the push that follows sends what is missing. */
  end(): Promise<void>
  sent(): Sent
  waiting(): RetryNotice | undefined
}

/** Sends chunks while others are still being packed. `changed`: it begins to wait, or goes on. */
export function startSending(target: PushTarget, signal: AbortSignal, changed: () => void): HeadStart {
  let waits: RetryNotice | undefined
  const place = openTarget(target, {
    onWaiting(waiting) {
      waits = waiting
      changed()
    },
  })
  let forwarding: Forwarding | undefined
  let sentBytes = 0
  const onSent = (bytes: number): void => {
    sentBytes = bytes
  }
  return {
    sent: () => ({ bytes: sentBytes, there: forwarding?.there ?? new Set() }),
    waiting: () => waits,
    through(store) {
      forwarding = forwardTo(place.repository, store, { signal, onSent })
      return forwarding.store
    },
    async end() {
      await forwarding?.idle()
      place[Symbol.dispose]()
    },
  }
}

function openTarget(
  { reference: text, from, createdAt, login, retry }: PushTarget,
  waiting: { readonly onWaiting: OnWaiting },
): Disposable & { repository: Repository; tag: string; annotations: Annotations } {
  const parsed = parseImageReference(text, 'push')
  if (!parsed.ok) throw new Error(`${parsed.problem}; ${parsed.hint}`)
  const { registry: host, repository, target: tag } = parsed.reference
  const source = from && sourceOf(from)
  const isNear = source !== undefined && source.registry === host && source.repository !== repository
  const server = source?.registry === host ? login.server : `https://${source?.registry}`
  const registry = openRegistry({ ...login, retry, ...waiting })
  return {
    repository: registry.repository(repository, isNear ? { mountFrom: source.repository } : {}),
    tag,
    annotations: annotationsOf({ to: parsed.reference, createdAt, ...(source && { from: { ...source, server } }) }),
    [Symbol.dispose]: () => registry.close(),
  }
}

/** By the name that people gave, and the digest that it stood for. */
function sourceOf({ pinned, name }: NonNullable<PushTarget['from']>): ImageReference | undefined {
  const [exact, named] = [pinned, name].map((text) => parseImageReference(text, 'pull'))
  if (!exact?.ok) return undefined
  return { ...exact.reference, tag: named?.ok ? named.reference.tag : undefined }
}
