// What images are copied from and to, whatever it is made of: content by digest, and manifests by tag or digest. A
// registry, a folder in OCI layout, our own image store.
import type { Descriptor, RawManifest } from './oci-manifest.ts'

export interface OpenOptions {
  readonly offset?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Whoever takes it checks the digest: once is enough. Nor can a part of a blob be checked, that begins at an offset. */
  readonly isUnchecked?: boolean | undefined
}

export interface ArtifactSource {
  /** For messages; carries no secret. */
  readonly name: string
  /** A tag is resolved here once: everything after goes by the digest that comes back. */
  resolve(reference: string, signal?: AbortSignal): Promise<RawManifest>
  /** The bytes from `offset` on. MUST end in an error when they are not as many, or (see there) not the right ones. */
  open(blob: Descriptor, options?: OpenOptions): AsyncIterable<Buffer>
  /** Returns the whole blob, checked, for blobs that fit into memory. */
  read(blob: Descriptor, signal?: AbortSignal): Promise<Buffer>
}

/** Content that can be read again from any place, for uploads that were cut off. */
export interface BlobContent {
  open(offset: number): AsyncIterable<Buffer>
}

export interface BlobPutOptions {
  readonly signal?: AbortSignal | undefined
  /** How far it has come. May go back, when something has to be sent again. */
  readonly onPosition?: ((bytes: number) => void) | undefined
}

export interface Destination {
  readonly name: string
  /**
   * Which blobs are wanted here, each once. MUST refuse what can never be taken, before any of it has moved; `read`
   * fetches small blobs for that.
   */
  plan(manifest: RawManifest, read: (blob: Descriptor) => Promise<Buffer>): Promise<readonly Descriptor[]>
  /** Whether it is there. */
  has(blob: Descriptor, signal?: AbortSignal): Promise<boolean>
  /** MUST keep it only when it is exactly what it was said to be: the digest is checked here. False: it is there, and nothing had to be sent. */
  put(blob: Descriptor, content: BlobContent, options?: BlobPutOptions): Promise<boolean>
  /** Comes last, and makes everything visible at once. Returns the digest under which it is known here. */
  finish(manifest: RawManifest, reference: string | undefined, signal?: AbortSignal): Promise<string>
}
