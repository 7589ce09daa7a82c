// Options that the calls of `svc3/client` take in addition to the input of their operation.

export interface CallOptions {
  /** Aborts the call with the signal's reason. A change that the service has started continues. */
  signal?: AbortSignal | undefined
  /** Milliseconds. Default: that of the client. */
  timeoutMs?: number | undefined
}

/** Options of POST calls. */
export interface ChangeOptions extends CallOptions {
  /** The same key within 24 hours gets the first answer. Default: a new one per call, the same for its retries. */
  idempotencyKey?: string | undefined
}

/** The part of fetch that the client needs. The global fetch has it, and that of undici. */
export type Fetch = (
  url: string,
  init: {
    method: string
    headers: Record<string, string>
    body?: string
    signal: AbortSignal
    redirect: 'manual' | 'error'
  },
) => Promise<{
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: {
    getReader(): {
      read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>
      cancel(): Promise<void>
    }
  } | null
}>
