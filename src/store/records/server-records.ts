// Records that servers of one cluster share about themselves: who is there, who holds which node's stream, where uploads
// go on, and what may be used only once whichever server is asked.

/** One of the servers. It renews its record; whoever sees no change for longer than the lease takes it for dead. */
export interface ServerRecord {
  /** Of its data folder. */
  readonly id: string
  /** Of its process: what an earlier one left is not its own. */
  readonly run: string
  /** Where other servers reach it, by https with the certificate of the cluster. */
  readonly internalUrl: string
  /** Where clients and agents reach it. */
  readonly apiUrl: string
  readonly version: string
  readonly startedAt: string
  readonly leaseMs: number
  /** Counts renewals, so that each changes the record. */
  readonly beat: number
}

/** One that has been there: its folder may have content of images that no other one has. Kept long after its end. */
export interface KnownServerRecord {
  readonly id: string
  readonly internalUrl: string
  /** Since when somebody has noticed that it is not there. */
  readonly goneAt?: string
}

/** Which server has the stream of a node. Written when one opens or ends, never in between. */
export interface PresenceRecord {
  readonly node: string
  readonly server: string
  readonly run: string
  /** Of the stream. */
  readonly session: string
  readonly since: string
}

/** Which server has the bytes of an upload that can go on. */
export interface UploadPlaceRecord {
  readonly server: string
  readonly updatedAt: string
}

/** Something that is good once: an ID token, a join token. Named by a hash of it. */
export interface UsedRecord {
  readonly firstAt: string
  /** It need not be remembered after this. */
  readonly expiresAt: string
  /** Of a join token: the key that joined by it, and whether its node was made. */
  readonly publicKey?: string
  readonly isDone?: boolean
}

/** Wrong logins of an account or from an address, named by a hash of it. */
export interface LoginTriesRecord {
  readonly wrong: number
  readonly freeAt: string
  readonly at: string
}
