// One HTTP/1.1 answer from the bytes of a connection that carries nothing else (RFC 9112, sections 4, 6 and 7).
// For loopback.ts; anything that is not plainly HTTP is refused.

/** Longer heads than this are nobody's whom we want to hear; Node draws the line at 16 KB. */
const maxHeadBytes = 65_536
const maxLineBytes = 1_024

/** The bytes are no HTTP answer. */
export class NotHttp extends Error {
  override readonly name = 'NotHttp'
  /** As Node's own parser calls it. */
  readonly code = 'HPE_INVALID_CONSTANT'
}

const noBody: ReadonlySet<number> = new Set([204, 304])

export class AnswerReader {
  status = 0
  readonly headers = new Map<string, string>()
  readonly #body: Buffer[] = []
  bodyBytes = 0
  /** Read, and not understood yet. */
  #rest: Buffer = Buffer.alloc(0)
  #step: 'head' | 'sized' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer' | 'until-close' | 'done' = 'head'
  /** Of the body, or of the chunk. */
  #bytesLeft = 0

  get isDone(): boolean {
    return this.#step === 'done'
  }

  /** The body so far. */
  bytes(): Buffer {
    return Buffer.concat(this.#body)
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    while (this.#advance());
  }

  /** The connection has ended: only an answer without a length ends with it. */
  end(): void {
    if (this.#step === 'until-close') this.#step = 'done'
  }

  /** Returns whether there may be more to understand in what has been read. */
  #advance(): boolean {
    switch (this.#step) {
      case 'head':
        return this.#readHead()
      case 'sized':
        return this.#take('done')
      case 'chunk':
        return this.#take('chunk-end')
      case 'chunk-size':
        return this.#readLine((line) => {
          const digits = /^([\da-f]{1,8})[ \t]*(?:;.*)?$/i.exec(line)?.[1]
          if (digits === undefined) throw new NotHttp('a chunk without its size')
          this.#bytesLeft = Number.parseInt(digits, 16)
          this.#step = this.#bytesLeft === 0 ? 'trailer' : 'chunk'
        })
      case 'chunk-end':
        return this.#readLine((line) => {
          if (line !== '') throw new NotHttp('a chunk longer than its size')
          this.#step = 'chunk-size'
        })
      case 'trailer':
        return this.#readLine((line) => {
          if (line === '') this.#step = 'done'
        })
      case 'until-close':
        this.#bytesLeft = Number.POSITIVE_INFINITY
        this.#take('done')
        return false
      case 'done':
        return false
    }
  }

  #readHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) {
      // Told early, because something else may wait for us to speak its language first.
      const start = this.#rest.toString('latin1', 0, 5)
      if (!'HTTP/'.startsWith(start) || this.#rest.length > maxHeadBytes) throw new NotHttp('no head of an answer')
      return false
    }
    const [statusLine = '', ...lines] = this.#rest.toString('latin1', 0, end).split('\r\n')
    this.#rest = this.#rest.subarray(end + 4)
    const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: .*)?$/.exec(statusLine)?.[1]
    if (status === undefined) throw new NotHttp('no status line')
    this.status = Number(status)
    this.headers.clear()
    for (const line of lines) {
      const [, name, value] = /^([!#$%&'*+\-.^_`|~\w]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
      if (name === undefined || value === undefined) throw new NotHttp('a header that is none')
      const key = name.toLowerCase()
      const before = this.headers.get(key)
      this.headers.set(key, before === undefined ? value : `${before}, ${value}`)
    }
    // "100 Continue" and its like announce the answer.
    if (this.status >= 200) this.#chooseBody()
    return true
  }

  #chooseBody(): void {
    const coding = this.headers.get('transfer-encoding')
    const length = this.headers.get('content-length')
    if (noBody.has(this.status)) this.#step = 'done'
    else if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked' || length !== undefined) throw new NotHttp('a body of unknown length')
      this.#step = 'chunk-size'
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new NotHttp('a length that is no number')
      this.#bytesLeft = Number(length)
      this.#step = this.#bytesLeft === 0 ? 'done' : 'sized'
    } else this.#step = 'until-close'
  }

  /** What is there of the body, or of the chunk; behind its last byte comes `next`. */
  #take(next: 'done' | 'chunk-end'): boolean {
    const taken = this.#rest.subarray(0, this.#bytesLeft)
    if (taken.length > 0) this.#body.push(taken)
    this.#rest = this.#rest.subarray(taken.length)
    this.bodyBytes += taken.length
    this.#bytesLeft -= taken.length
    if (this.#bytesLeft > 0) return false
    this.#step = next
    return true
  }

  #readLine(use: (line: string) => void): boolean {
    const end = this.#rest.indexOf('\r\n')
    if (end < 0 && this.#rest.length > maxLineBytes) throw new NotHttp('a line without an end')
    if (end < 0) return false
    const line = this.#rest.toString('latin1', 0, end)
    this.#rest = this.#rest.subarray(end + 2)
    use(line)
    return true
  }
}
