// What every call of `svc3/client` takes beside the input of its operation.

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, with the signal's reason. A change that the service has begun continues. */
  signal?: AbortSignal | undefined
  /** Milliseconds. Default: that of the client. */
  timeoutMs?: number | undefined
}

/** Options of calls that change something by POST. */
export interface ChangeOptions extends CallOptions {
  /** The same key within 24 hours gets the first answer. Default: a new one per call, the same for its retries. */
  idempotencyKey?: string | undefined
}
