// Pushes an image to an OCI registry from this node: the content that the registry lacks, and the manifest last. An interrupted
// push continues with the missing content. Credentials are requested when they are needed, and not stored.
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
  /** The image that the VM was deployed from, if it is in a registry. Content that the registry has is not sent. */
  readonly from: { /** `host/repository@sha256:…` */ readonly pinned: string; readonly name: string } | undefined
  readonly createdAt?: string | undefined
  readonly login: RegistryLogin
  /** Tests only. */
  readonly retry?: RetryPolicy | undefined
}

/** Content that was sent while the image was being packed. */
export interface SentEarly {
  readonly bytes: number
  /** Digests that the registry has. */
  readonly there: ReadonlySet<string>
}

export interface PushOptions {
  readonly sent: SentEarly | undefined
  readonly store: ContentStore
  readonly format: PushFormat | undefined
  /** Whether no other capture is packing. Content that only this push needed may then be deleted. */
  isAlone(): Promise<boolean>
  readonly signal: AbortSignal
  progress(progress: CaptureProgress): void
  /** Called before the image becomes visible. Throws if the push is no longer desired. */
  confirm(): Promise<void>
}

/** Returns the digest that the image has in the registry. */
export async function push(content: string, target: PushTarget, options: PushOptions): Promise<string> {
  const { store, sent, signal, progress } = options
  let current: CaptureProgress = { percent: 0, bytes: 0 }
  using opened = openTarget(target, {
    onWaiting: (waiting) => progress({ ...current, ...(waiting && { waiting }) }),
  })
  const { annotations } = opened
  await using source =
    options.format === 'tart'
      ? sourceForTart(options, annotations)
      : { target: imageSource(store, annotations), [Symbol.asyncDispose]: async () => undefined }
  const { digest } = await copy(
    { target: source.target, reference: content },
    { target: opened.repository, reference: opened.tag },
    {
      signal,
      there: sent?.there,
      beforeFinish: options.confirm,
      onProgress: ({ bytesTotal, bytesDone, bytesSkipped }) => {
        current = {
          percent: bytesTotal === 0 ? 0 : Math.min(99, (100 * bytesDone) / bytesTotal),
          bytes: bytesDone,
          phase: 'sending',
          bytesTotal,
          bytesSkipped: Math.max(0, bytesSkipped - (sent?.bytes ?? 0)),
        }
        progress(current)
      },
    },
  )
  return digest
}

/** Makes the layers of tart's format before they are sent, and deletes them afterwards. */
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

/** Sends chunks while others are packed. `changed` is called when the registry stops or starts to respond. */
export function startSending(target: PushTarget, signal: AbortSignal, changed: () => void) {
  let waits: RetryNotice | undefined
  const opened = openTarget(target, {
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
    sent: (): SentEarly => ({ bytes: sentBytes, there: forwarding?.there ?? new Set() }),
    waiting: () => waits,
    /** Wraps the store so that content that is put into it is also sent. */
    wrapStore(store: ContentStore): ContentStore {
      forwarding = forwardTo(opened.repository, store, { signal, onSent })
      return forwarding.store
    },
    /** Resolves when that content is sent. Never fails: the push sends the rest. */
    async end(): Promise<void> {
      await forwarding?.idle()
      opened[Symbol.dispose]()
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

/** Returns the reference that users gave, with the digest that it had. */
function sourceOf({ pinned, name }: NonNullable<PushTarget['from']>): ImageReference | undefined {
  const [exact, named] = [pinned, name].map((text) => parseImageReference(text, 'pull'))
  if (!exact?.ok) return undefined
  return { ...exact.reference, tag: named?.ok ? named.reference.tag : undefined }
}
