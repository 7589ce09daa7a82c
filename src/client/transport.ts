// The seam between the client and what carries its requests: Node's http here, fetch in a browser.

/** A body that is not held in memory. It is sent once, when the other side has said that it wants it. */
export interface BodyStream {
  readonly bytes: number
  readonly pieces: AsyncIterable<Uint8Array>
}

export interface TransportRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** In place of `body`. */
  readonly upload?: BodyStream | undefined
  readonly signal: AbortSignal
  /** True for requests that may not be sent twice: they MUST NOT go out on a reused connection, which may be dead. */
  readonly fresh: boolean
  /** The answer may never end: what has come of it must be had at once, from `body`. */
  readonly isStream?: boolean
}

export interface TransportResponse {
  readonly status: number
  header(name: string): string | undefined
  /** MUST throw when the answer ends before its end. Stopping the iteration early MUST free the connection. */
  readonly body: AsyncIterable<Uint8Array>
  /** In place of `body`, of a watch: its events, where the transport has parsed them already. */
  readonly events?: AsyncIterable<unknown>
  /** In place of `body`: all of it. Must throw rather than hold more than `maxBytes`. */
  text(maxBytes: number): Promise<string>
}

/** MUST throw ConnectionError when no answer comes, and the signal's reason when it aborts. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>

/** refused: surely not received. lost: perhaps received. timeout: no answer in time. unusable: a wrong address. */
export type ConnectionFault = 'refused' | 'lost' | 'timeout' | 'unusable'

/** No answer from the service: what address, what failed, what to do. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly fault: ConnectionFault
  readonly address: string
  readonly hint: string

  constructor(fault: ConnectionFault, address: string, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.fault = fault
    this.address = address
    this.hint = hint
  }

  /** A server that restarts refuses connections for a moment; a wrong address stays wrong. */
  get isTransient(): boolean {
    return this.fault !== 'unusable'
  }
}

/** Reads a whole response, and throws rather than hold more than `maxBytes`. */
export async function textOf(chunks: AsyncIterable<Uint8Array>, url: string, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) {
      const what = `The answer of ${url} is longer than ${maxBytes} bytes`
      throw new ConnectionError('unusable', url, what, 'Request fewer records, for example with a limit')
    }
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
