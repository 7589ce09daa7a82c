// A gRPC connection to one member of etcd on Node's own HTTP/2. It tells for every call whether the member can have
// received it, and detects a silent peer (docs/decisions/2026-11-15-etcd.md).
import http2 from 'node:http2'

export interface Endpoint {
  readonly url: string
  /** Called for every connection, so that renewed certificates are used. */
  readonly tls?: () => Promise<http2.SecureClientSessionOptions>
}

/**
 * `unsent`: the call never left this process, or the peer refused to look at it. `answered`: the peer returned an error
 * with gRPC's `code`. `unclear`: the connection broke or the deadline passed, and the call may have been carried out.
 */
type FailureKind = 'unsent' | 'answered' | 'unclear'

export class CallFailure extends Error {
  override readonly name = 'CallFailure'
  readonly kind: FailureKind
  readonly code: number

  constructor(kind: FailureKind, text: string, code = 0) {
    super(text)
    this.kind = kind
    this.code = code
  }
}

export interface CallStream {
  send(body: Buffer): void
  /** Ends the stream without further events. */
  cancel(): void
}

export interface StreamListener {
  message(body: Buffer): void
  /** The stream ended for any reason other than `cancel`. */
  ended(failure: CallFailure): void
}

interface OpenStream extends Pick<CallStream, 'cancel'> {
  readonly stream: http2.ClientHttp2Stream
}

export type Metadata = Readonly<Record<string, string>>

const connectMs = 1_000
/** A pending call without any data for this long triggers a ping. */
const quietMs = 500
/** The peer is considered dead if it does not answer a ping within this time. */
const pongMs = 1_000
/** etcd closes connections that ping more often, unless it sent something in between. */
const pingEveryMs = 5_500
const windowBytes = 8 * 1_048_576
/** Far larger than any page of a list. */
const maxMessageBytes = 256 * 1_048_576

export class EtcdConnection {
  readonly url: string
  readonly #session: http2.ClientHttp2Session
  readonly #watchdog: NodeJS.Timeout
  #waiting = 0
  #waitingSinceMs = 0
  #streams = 0
  #heardMs = performance.now()
  #pingedMs = Number.NEGATIVE_INFINITY
  #reason = 'the connection was closed'

  static async open({ url, tls }: Endpoint): Promise<EtcdConnection> {
    const options = tls && (await tls())
    const session = http2.connect(url, {
      ...options,
      settings: { enablePush: false, initialWindowSize: windowBytes },
      maxSessionMemory: 1_000,
    })
    await new Promise<void>((resolve, reject) => {
      const fail = (error?: Error): void => {
        clearTimeout(timer)
        session.destroy()
        reject(new CallFailure('unsent', `${url}: ${reasonOf(error)}`))
      }
      const timer = setTimeout(() => fail(new Error('no connection within 1 s')), connectMs)
      session.once('error', fail)
      session.once('close', fail)
      session.once('connect', () => {
        clearTimeout(timer)
        session.off('error', fail).off('close', fail)
        resolve()
      })
    })
    session.setLocalWindowSize(windowBytes)
    return new EtcdConnection(url, session)
  }

  private constructor(url: string, session: http2.ClientHttp2Session) {
    this.url = url
    this.#session = session
    this.#watchdog = setInterval(() => this.#listen(), quietMs / 2).unref()
    session.on('error', (error) => {
      this.#reason = reasonOf(error)
    })
    session.on('close', () => clearInterval(this.#watchdog))
  }

  get isUsable(): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  close(): void {
    this.#session.destroy()
  }

  /** Rejects with CallFailure only. */
  unary(path: string, body: Buffer, metadata: Metadata, deadlineMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      let answer: Buffer | undefined
      const settle = (failure?: CallFailure): void => {
        clearTimeout(timer)
        this.#waiting--
        if (failure) reject(failure)
        else resolve(answer ?? Buffer.alloc(0))
      }
      const timer = setTimeout(() => {
        opened?.cancel()
        settle(new CallFailure('unclear', `${this.url} did not answer within ${deadlineMs} ms`))
      }, deadlineMs)
      if (this.#waiting++ === 0) this.#waitingSinceMs = performance.now()
      const opened = this.#open(
        path,
        { ...metadata, 'grpc-timeout': `${Math.ceil(deadlineMs)}m` },
        {
          message: (bytes) => {
            answer = bytes
          },
          // gRPC reports the status of a call only at its end.
          ended: settle,
        },
      )
      opened?.stream.end(frame(body))
    })
  }

  stream(path: string, metadata: Metadata, listener: StreamListener): CallStream | undefined {
    const ended = (failure?: CallFailure): void =>
      listener.ended(failure ?? new CallFailure('answered', `${this.url} ended the stream`))
    const opened = this.#open(path, metadata, { message: (body) => listener.message(body), ended })
    if (!opened) return undefined
    const { stream, cancel } = opened
    this.#streams++
    stream.on('close', () => this.#streams--)
    return { send: (body) => void stream.write(frame(body)), cancel }
  }

  #open(
    path: string,
    metadata: Metadata,
    listener: { message(body: Buffer): void; ended(failure?: CallFailure): void },
  ): OpenStream | undefined {
    let stream: http2.ClientHttp2Stream
    try {
      stream = this.#session.request({
        ...metadata,
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
      })
    } catch (error) {
      listener.ended(new CallFailure('unsent', `${this.url}: ${reasonOf(error)}`))
      return undefined
    }
    let isOver = false
    let status: http2.IncomingHttpHeaders = {}
    const unframe = unframer((body) => !isOver && listener.message(body))
    const over = (failure?: CallFailure): void => {
      if (isOver) return
      isOver = true
      listener.ended(failure)
    }
    stream.on('response', (headers) => {
      this.#heardMs = performance.now()
      status = headers
    })
    stream.on('trailers', (headers) => {
      status = headers
    })
    stream.on('data', (chunk: Buffer) => {
      this.#heardMs = performance.now()
      try {
        unframe(chunk)
      } catch (error) {
        stream.close(http2.constants.NGHTTP2_CANCEL)
        over(new CallFailure('unclear', `${this.url}: ${reasonOf(error)}`))
      }
    })
    // The 'close' event that follows reports the failure.
    stream.on('error', () => undefined)
    stream.on('close', () => over(this.#judge(stream, status)))
    const cancel = (): void => {
      isOver = true
      stream.close(http2.constants.NGHTTP2_CANCEL)
    }
    return { stream, cancel }
  }

  #judge(stream: http2.ClientHttp2Stream, headers: http2.IncomingHttpHeaders): CallFailure | undefined {
    const status = headers['grpc-status']
    if (status === '0') return undefined
    if (status !== undefined)
      return new CallFailure('answered', decodeText(String(headers['grpc-message'] ?? '')), Number(status))
    const isRefused = stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM
    return new CallFailure(isRefused ? 'unsent' : 'unclear', `${this.url}: ${this.#reason}`)
  }

  /** Detects a paused or unreachable peer, whose connection stays open in silence. */
  #listen(): void {
    const nowMs = performance.now()
    const silentMs = nowMs - this.#heardMs
    const isOverdue = this.#waiting > 0 && silentMs > quietMs && nowMs - this.#waitingSinceMs > quietMs
    const isIdle = this.#streams > 0 && silentMs > pingEveryMs
    const mayPing = this.#heardMs > this.#pingedMs || nowMs - this.#pingedMs > pingEveryMs
    if (!(isOverdue || isIdle) || !mayPing || !this.isUsable) return
    this.#pingedMs = nowMs
    const timer = setTimeout(() => {
      // This event loop may have been busy, so data that has arrived is read first.
      setImmediate(() => {
        if (this.#heardMs > nowMs || !this.isUsable) return
        this.#reason = `no answer for ${Math.round(performance.now() - this.#heardMs)} ms`
        this.#session.destroy()
      })
    }, pongMs).unref()
    this.#session.ping((error) => {
      if (error) return
      clearTimeout(timer)
    })
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors[0]) return reasonOf(error.errors[0])
  return error instanceof Error && error.message !== '' ? error.message : 'the connection was closed'
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Prefixes a message with gRPC's five bytes: a flag for compression and the length. */
function frame(body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

function unframer(deliver: (body: Buffer) => void): (chunk: Buffer) => void {
  let held: Buffer[] = []
  let heldBytes = 0
  let neededBytes = 5
  return (chunk) => {
    held.push(chunk)
    heldBytes += chunk.length
    if (heldBytes < neededBytes) return
    let bytes = held.length === 1 ? chunk : Buffer.concat(held)
    while (bytes.length >= 5) {
      const length = bytes.readUInt32BE(1)
      if (bytes[0] !== 0 || length > maxMessageBytes) throw new Error('it sent invalid data')
      neededBytes = 5 + length
      if (bytes.length < neededBytes) break
      deliver(bytes.subarray(5, neededBytes))
      bytes = bytes.subarray(neededBytes)
      neededBytes = 5
    }
    held = bytes.length > 0 ? [bytes] : []
    heldBytes = bytes.length
  }
}
