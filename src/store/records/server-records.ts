// Records that the servers of a cluster share: which servers exist, which of them holds a node's stream or an upload,
// and what may be used only once.

/**
 * A running server. It renews its record, and others consider it dead when they see no change for longer than the
 * lease.
 */
export interface ServerRecord {
  /** The id of its data folder. */
  readonly id: string
  /** The id of its process, which distinguishes it from an earlier process of the same folder. */
  readonly run: string
  /** Where other servers reach it, by HTTPS with the certificate of the cluster. */
  readonly internalUrl: string
  /** Where clients and agents reach it. */
  readonly apiUrl: string
  readonly version: string
  readonly startedAt: string
  readonly leaseMs: number
  /** Incremented to change the record with every renewal. */
  readonly beat: number
}

/** A server that has existed. Its folder may have the only copy of some content, so this is kept long after its end. */
export interface KnownServerRecord {
  readonly id: string
  readonly internalUrl: string
  /** When its absence was first noticed. */
  readonly goneAt?: string
}

/** The server that holds the stream of a node. Written only when a stream opens or ends. */
export interface PresenceRecord {
  readonly node: string
  readonly server: string
  readonly run: string
  /** The id of the stream. */
  readonly session: string
  readonly since: string
}

/** The server that has the bytes of a resumable upload. */
export interface UploadPlaceRecord {
  readonly server: string
  readonly updatedAt: string
}

/** Something that is valid once, such as a join token or an ID token. Named by its hash. */
export interface UsedRecord {
  readonly firstAt: string
  /** When the record may be deleted. */
  readonly expiresAt: string
  /** Only for join tokens: the key that joined by it, and whether its node was created. */
  readonly publicKey?: string
  readonly isDone?: boolean
}

/** Failed logins of an account or an address, named by its hash. */
export interface LoginTriesRecord {
  readonly wrong: number
  readonly freeAt: string
  readonly at: string
}
