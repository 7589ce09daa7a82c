// The interface of a remote: lists its items, and fetches one.
import type { Architecture } from '../../api/architecture.ts'
import type { ArtifactSource } from '../../oci/artifact/target.ts'
import type { Firmware, GuestSystem, Imported } from '../images/contents.ts'
import type { IntakeProgress } from '../images/intake.ts'

export type RemoteKind = 'image' | 'iso'

export interface ListedItem {
  readonly kind: RemoteKind
  readonly name: string
  readonly type: Architecture
  readonly bytes: number
  /** The digest of what is fetched, in hexadecimal. The pull fails if it changes. */
  readonly sha256: string
  readonly description?: string
  readonly firmware?: Firmware
  readonly os?: GuestSystem
}

interface FetchWork {
  /** A file for partial data, which survives a restart. */
  readonly file: string
  readonly signal: AbortSignal
  progress(progress: IntakeProgress): void
  /** Called with the reason when the fetch is waiting, and with undefined when it continues. */
  waits(reason: string | undefined): void
  take(): Promise<Imported>
  /** Stores an image of a registry as content, by the digest of its manifest. */
  takeFrom(source: ArtifactSource, digest: string): Promise<Imported>
}

/** MUST throw RemoteError for faults of the remote, and stop when the signal aborts. */
export interface RemoteSource {
  list(signal: AbortSignal): Promise<readonly ListedItem[]>
  /** MUST resume an interrupted call, and return exactly the content of the item. */
  fetch(item: ListedItem, work: FetchWork): Promise<Imported>
}
