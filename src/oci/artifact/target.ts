// Sources and destinations of copies: content by digest, manifests by tag or digest. Implemented by registries and
// image stores.
import type { Descriptor, RawManifest } from './oci-manifest.ts'

export interface OpenOptions {
  readonly offset?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Do not verify the digest, because the caller does. Content that begins at an offset is never verified. */
  readonly isUnchecked?: boolean | undefined
}

export interface ArtifactSource {
  /** For messages. Contains no secrets. */
  readonly name: string
  resolve(reference: string, signal?: AbortSignal): Promise<RawManifest>
  /**
   * The bytes from `offset` to the end. MUST throw if their number is wrong, or the digest, unless `isUnchecked` is
   * set.
   */
  open(blob: Descriptor, options?: OpenOptions): AsyncIterable<Buffer>
  /** The whole blob, verified. Only for blobs that fit into memory. */
  read(blob: Descriptor, signal?: AbortSignal): Promise<Buffer>
}

/** Content that can be read again from any offset, to resume uploads. */
export interface BlobContent {
  open(offset: number): AsyncIterable<Buffer>
}

/** Content that is in memory. */
export async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

export interface BlobPutOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes sent so far, which may decrease when an upload is repeated. */
  readonly onPosition?: ((bytes: number) => void) | undefined
}

export interface Destination {
  readonly name: string
  /**
   * The blobs that the destination needs. MUST refuse an unusable manifest before any content moves; `read` fetches
   * small blobs for that check.
   */
  plan(manifest: RawManifest, read: (blob: Descriptor) => Promise<Buffer>): Promise<readonly Descriptor[]>
  has(blob: Descriptor, signal?: AbortSignal): Promise<boolean>
  /** MUST verify the digest. Returns false if the destination had the blob, so that nothing was sent. */
  put(blob: Descriptor, content: BlobContent, options?: BlobPutOptions): Promise<boolean>
  /** Called last; makes the image visible. Returns its digest at the destination. */
  finish(manifest: RawManifest, reference: string | undefined, signal?: AbortSignal): Promise<string>
}
