// The interface of a remote: what it offers, and how to fetch it.
import type { Architecture } from '../../api/architecture.ts'
import type { ArtifactSource } from '../../oci/artifact/target.ts'
import type { Firmware, GuestSystem, Imported } from '../images/contents.ts'
import type { IntakeProgress } from '../images/intake.ts'

export type RemoteKind = 'image' | 'iso'

export interface ListedItem {
  readonly kind: RemoteKind
  readonly name: string
  readonly type: Architecture
  /** Of what is fetched. */
  readonly bytes: number
  /** Of what is fetched, 64 digits: the same to the end, or the pull fails. */
  readonly sha256: string
  readonly description?: string
  readonly firmware?: Firmware
  readonly os?: GuestSystem
}

interface FetchWork {
  /** A place of its own on the disk, which is still there after a restart. */
  readonly file: string
  readonly signal: AbortSignal
  progress(progress: IntakeProgress): void
  /** Nothing comes, and why; undefined: it goes on. */
  waits(reason: string | undefined): void
  /** Makes content of the file. */
  take(): Promise<Imported>
  /** Makes content of an image in a registry, by the digest of its manifest there. */
  takeFrom(source: ArtifactSource, digest: string): Promise<Imported>
}

/** One kind of remote. MUST throw RemoteError for what is the remote's fault, and stop when the signal aborts. */
export interface RemoteSource {
  list(signal: AbortSignal): Promise<readonly ListedItem[]>
  /** MUST go on where an earlier call was cut off, and return content that is exactly what the item says. */
  fetch(item: ListedItem, work: FetchWork): Promise<Imported>
}
