// The interface between the client and its HTTP implementation: Node's http, or fetch in a browser.

/** A request body that is streamed. It is sent once, after the server agreed to receive it. */
export interface BodyStream {
  readonly bytes: number
  readonly pieces: AsyncIterable<Uint8Array>
}

export interface TransportRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** Instead of `body`. */
  readonly upload?: BodyStream | undefined
  readonly signal: AbortSignal
  /** True for requests that must not be sent twice: they MUST NOT use an idle connection, which may be dead. */
  readonly fresh: boolean
  /** The response may never end: `body` must yield each part as it arrives. */
  readonly isStream?: boolean
}

export interface TransportResponse {
  readonly status: number
  header(name: string): string | undefined
  /** MUST throw if the response is truncated. Stopping the iteration early MUST free the connection. */
  readonly body: AsyncIterable<Uint8Array>
  /** The events of a watch, instead of `body`, if the transport parses them itself. */
  readonly events?: AsyncIterable<unknown>
  /** The whole body, instead of `body`. MUST throw if it has more than `maxBytes`. */
  text(maxBytes: number): Promise<string>
}

/** MUST throw ConnectionError if no response arrives, and the signal's reason on abort. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>

/**
 * refused: the request was not received. lost: it may have been received. timeout: no response in time. unusable: the
 * address, the certificate or the response is wrong.
 */
export type ConnectionFault = 'refused' | 'lost' | 'timeout' | 'unusable'

/** The service did not answer. */
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

  /** A restarting server refuses connections for a moment; a wrong address stays wrong. */
  get isTransient(): boolean {
    return this.fault !== 'unusable'
  }
}

/** Reads a whole response. Throws if it has more than `maxBytes`. */
export async function readText(chunks: AsyncIterable<Uint8Array>, url: string, maxBytes: number): Promise<string> {
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
