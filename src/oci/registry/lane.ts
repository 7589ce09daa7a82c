// One connection to a registry that carries blobs straight into the memory that is to hold them. It knows one question (GET)
// and one answer (200, with its length); with any other it ends.
import type { OnReadOpts, Socket } from 'node:net'

/** `isElsewhere`: the registry does not hand out blobs itself, or not in this way; asking it again would be in vain. */
export interface Received {
  readonly bytes: number
  readonly isElsewhere: boolean
}

interface Job {
  readonly into: Buffer
  readonly resolve: (received: Received) => void
  at: number
  isBody: boolean
}

export interface LaneOptions {
  /** Undefined where that must not be. */
  connect(onread: OnReadOpts): Socket | undefined
  /** The event after which it may be used: with TLS, not before the certificate was looked at. */
  readonly readyOn: 'connect' | 'secureConnect'
}

const mostHeadBytes = 16_384
const pieceBytes = 2 ** 20
const endOfHead = Buffer.from('\r\n\r\n')

export class Lane {
  readonly #head = Buffer.alloc(mostHeadBytes)
  readonly #ready: Promise<boolean>
  readonly #socket: Socket | undefined
  #headBytes = 0
  #job: Job | undefined
  #isOpen = true
  /** What has come is the last. */
  #isLast = false

  constructor({ connect, readyOn }: LaneOptions) {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#ready = promise
    this.#socket = connect({ buffer: () => this.#place(), callback: (bytes) => this.#took(bytes) })
    this.#isOpen = this.#socket !== undefined
    if (!this.#socket) resolve(false)
    this.#socket?.once(readyOn, () => resolve(true)).on('error', () => undefined)
    for (const event of ['close', 'end', 'timeout'])
      this.#socket?.on(event, () => {
        resolve(false)
        this.end()
      })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** What came of the answer to this request. Memory is left alone from then on. */
  async receive(head: string, into: Buffer, silenceMs: number): Promise<Received> {
    const { promise, resolve } = Promise.withResolvers<Received>()
    this.#job = { into, resolve, at: 0, isBody: false }
    this.#socket?.ref().setTimeout(silenceMs)
    if (await this.#ready) this.#socket?.write(head, 'latin1')
    else this.end()
    return await promise
  }

  /** Until it is wanted again, it keeps no process alive, and itself only for a while. */
  rest(mostMs: number): void {
    this.#socket?.unref().setTimeout(mostMs)
  }

  end(isElsewhere = false): void {
    this.#isOpen = false
    this.#socket?.destroy()
    this.#settle(isElsewhere)
  }

  #settle(isElsewhere: boolean): void {
    const job = this.#job
    this.#job = undefined
    this.#headBytes = 0
    job?.resolve({ bytes: job.at, isElsewhere })
  }

  /** Where to put what comes next. */
  #place(): Buffer {
    const job = this.#job
    return job?.isBody ? job.into.subarray(job.at, job.at + pieceBytes) : this.#head.subarray(this.#headBytes)
  }

  #took(bytes: number): boolean {
    const job = this.#job
    if (!job)
      this.end() // Nobody asked.
    else if (job.isBody) this.#tookBody(job, bytes)
    else {
      this.#headBytes += bytes
      this.#tookHead(job)
    }
    return true
  }

  #tookHead(job: Job): void {
    const came = this.#head.subarray(0, this.#headBytes)
    const length = came.indexOf(endOfHead)
    const begun = came.subarray(length + endOfHead.length)
    if (length < 0) {
      if (came.length === mostHeadBytes) this.end()
      return
    }
    const { bytes, isElsewhere, isLast } = readHead(came.toString('latin1', 0, length))
    if (bytes !== job.into.length || begun.length > bytes) {
      this.end(isElsewhere)
      return
    }
    begun.copy(job.into)
    job.isBody = true
    this.#isLast = isLast
    this.#tookBody(job, begun.length)
  }

  #tookBody(job: Job, bytes: number): void {
    job.at += bytes
    if (job.at < job.into.length) return
    if (this.#isLast) this.end()
    else this.#settle(false)
  }
}

interface Head {
  /** Of the body; undefined where the answer is not one of those that this knows. */
  readonly bytes: number | undefined
  readonly isElsewhere: boolean
  readonly isLast: boolean
}

function readHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first)?.[1])
  const headers = lines.map((line) => /^([^:\s]+):[ \t]*(.*?)[ \t]*$/.exec(line)?.slice(1) ?? ['', line])
  const valuesOf = (wanted: string): string[] =>
    headers.flatMap(([name = '', value = '']) => (name.toLowerCase() === wanted ? [value.toLowerCase()] : []))
  const [length = '', ...more] = valuesOf('content-length')
  const isCoded = ['transfer-encoding', 'content-encoding'].some((name) => valuesOf(name).length > 0)
  const isSized = status === 200 && !isCoded && more.length === 0 && /^\d{1,15}$/.test(length)
  return {
    bytes: isSized ? Number(length) : undefined,
    isElsewhere: (status >= 300 && status < 400) || (status === 200 && !isSized),
    isLast: valuesOf('connection').some((value) => value.split(/\s*,\s*/).includes('close')),
  }
}
