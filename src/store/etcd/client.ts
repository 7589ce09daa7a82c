// Calls to any member of etcd that answers. The client chooses a member, logs in, gives each try its own deadline, and
// retries where that is safe. It reports whether an earlier try may have been carried out.
import {
  CallFailure,
  type CallStream,
  type Endpoint,
  type EtcdConnection,
  type Metadata,
  type StreamListener,
} from './connection.ts'
import { Members } from './members.ts'
import { decodeToken, encodeAuthenticate, methods } from './protocol.ts'
import { Semaphore } from './semaphore.ts'
import { grpc, judge } from './verdict.ts'

interface Credentials {
  readonly user: string
  readonly password: string
}

export interface EtcdClientOptions {
  readonly endpoints: readonly Endpoint[]
  /** Called for every login, so that a changed password is used. */
  readonly credentials?: (() => Promise<Credentials>) | undefined
  /** Receives warnings for the operator. */
  readonly notice: (text: string) => void
  /** The limit for all tries of a call together. */
  readonly timeoutMs: number
}

export interface EtcdCallOptions {
  /** Whether carrying out the call twice has the same effect as once. */
  readonly isRepeatable: boolean
  readonly tryMs: number
  /** The limit for all tries. Default: that of the client. */
  readonly timeoutMs?: number
  /** Skips the queue of calls. */
  readonly isUrgent?: boolean
}

interface Answer {
  readonly bytes: Buffer
  readonly perhapsBefore: boolean
}

/** A failed call. `code` is gRPC's, or 0 if no member answered. */
export class EtcdFailure extends Error {
  override readonly name = 'EtcdFailure'
  readonly code: number
  /** Whether the call may have been carried out. If `settled`, it will not be later, so a read shows whether it was. */
  readonly perhaps: boolean
  readonly settled: boolean

  constructor(text: string, code: number, perhaps: boolean, settled = !perhaps) {
    super(text)
    this.code = code
    this.perhaps = perhaps
    this.settled = settled
  }
}

/** Makes a member without a quorum fail at once, instead of at the deadline. */
const hasLeader: Metadata = { hasleader: 'true' }
const loginMs = 5_000
const maxLogins = 3
/** etcd's throughput hardly grows beyond 16 concurrent calls, and beyond a few hundred each waits too long. */
const callsAtOnce = 64

export class EtcdClient {
  readonly #options: EtcdClientOptions
  readonly #members: Members
  readonly #stop = new AbortController()
  readonly #slots = new Semaphore(callsAtOnce)
  #token: Promise<string> | undefined
  #following: Promise<void> | undefined

  constructor(options: EtcdClientOptions) {
    this.#options = options
    this.#members = new Members(options.endpoints, options.notice, this.#stop.signal)
  }

  async call(method: string, body: Buffer, options: EtcdCallOptions): Promise<Answer> {
    const untilMs = performance.now() + (options.timeoutMs ?? this.#options.timeoutMs)
    if (options.isUrgent) return this.#try(method, body, options, untilMs)
    if (!(await this.#slots.acquire(untilMs))) throw new EtcdFailure('too many pending calls', grpc.unavailable, false)
    try {
      return await this.#try(method, body, options, untilMs)
    } finally {
      this.#slots.release()
    }
  }

  async #try(method: string, body: Buffer, { isRepeatable, tryMs }: EtcdCallOptions, untilMs: number): Promise<Answer> {
    let isUnclear = false
    let logins = 0
    for (let tries = 1; ; tries++) {
      let connection: EtcdConnection | undefined
      try {
        connection = this.#members.usual() ?? (await this.#members.connect(untilMs))
        const metadata = this.#options.credentials ? await this.#metadata(connection) : hasLeader
        const leftMs = Math.max(untilMs - performance.now(), 100)
        return {
          bytes: await connection.unary(method, body, metadata, Math.min(tryMs, leftMs)),
          perhapsBefore: isUnclear,
        }
      } catch (error) {
        if (!(error instanceof CallFailure)) throw error
        const verdict = judge(error)
        isUnclear ||= verdict === 'unclear'
        const isAnswer = verdict === 'final' || verdict === 'either'
        if (verdict === 'login') {
          this.#token = undefined
          logins++
        } else if (!isAnswer) this.avoid(connection, error.message)
        const isOver = performance.now() >= untilMs || this.#stop.signal.aborted || logins >= maxLogins
        if (isAnswer || isOver || (verdict === 'unclear' && !isRepeatable))
          throw new EtcdFailure(error.message, error.code, isUnclear || verdict === 'either', !isUnclear)
      }
      // Other members are tried at once. After that, they may need time to elect a leader.
      if (tries >= this.#members.count) await this.#members.pause(Math.min(25 * tries, 200))
    }
  }

  /** Opens a stream to a member that has a leader. Rejects with EtcdFailure. */
  async stream(method: string, listener: StreamListener): Promise<{ connection: EtcdConnection; stream: CallStream }> {
    try {
      const connection = await this.#members.connect(performance.now() + this.#options.timeoutMs)
      const stream = connection.stream(method, await this.#metadata(connection), listener)
      if (!stream) throw new CallFailure('unsent', `${connection.url} closed the connection`)
      return { connection, stream }
    } catch (error) {
      if (error instanceof CallFailure) throw new EtcdFailure(error.message, error.code, false)
      throw error
    }
  }

  /** Makes other members preferred for a while. */
  avoid(connection: EtcdConnection | undefined, problem: string): void {
    this.#members.avoid(connection, problem)
  }

  /** Prefers the leader from now on. Never rejects. */
  async follow(): Promise<void> {
    this.#following ??= this.#members.follow().finally(() => {
      this.#following = undefined
    })
    await this.#following
  }

  /** Makes the next call log in again. */
  forgetLogin(): void {
    this.#token = undefined
  }

  close(): void {
    this.#stop.abort()
    this.#members.close()
  }

  async #metadata(connection: EtcdConnection): Promise<Metadata> {
    const { credentials } = this.#options
    if (!credentials) return hasLeader
    this.#token ??= this.#login(connection, credentials)
    const mine = this.#token
    try {
      const token = await mine
      return token === '' ? hasLeader : { ...hasLeader, token }
    } catch (error) {
      if (this.#token === mine) this.#token = undefined
      throw error
    }
  }

  async #login(connection: EtcdConnection, credentials: () => Promise<Credentials>): Promise<string> {
    const { user, password } = await credentials()
    try {
      const body = encodeAuthenticate(user, password)
      return decodeToken(await connection.unary(methods.authenticate, body, hasLeader, loginMs))
    } catch (error) {
      if (error instanceof CallFailure && /authentication is not enabled/.test(error.message)) return ''
      // A login has no effects, so it can be repeated.
      if (error instanceof CallFailure && judge(error) === 'unclear') throw new CallFailure('unsent', error.message)
      throw error
    }
  }
}
