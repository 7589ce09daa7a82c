// Calls to etcd through whichever member answers: chooses a member, logs in, gives each try a deadline of its own, and
// tries again where that is safe. Whoever calls learns whether an earlier try may have been carried out.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  CallFailure,
  type CallStream,
  Connection,
  type Endpoint,
  type Metadata,
  type StreamListener,
} from './etcd-connection.ts'
import { decodeStatus, decodeToken, encodeAuthenticate, methods } from './etcd-protocol.ts'

export interface Credentials {
  readonly user: string
  readonly password: string
}

export interface ClientOptions {
  readonly endpoints: readonly Endpoint[]
  /** Asked for every login, so that a new password is taken up. */
  readonly credentials?: (() => Promise<Credentials>) | undefined
  /** Hears what an operator should know. */
  readonly notice: (text: string) => void
  /** For all tries of a call together. */
  readonly patienceMs: number
}

export interface CallOptions {
  /** Carrying it out twice is the same as once. */
  readonly isRepeatable: boolean
  readonly tryMs: number
  /** For all tries; the client's own unless given. */
  readonly patienceMs?: number
}

export interface Answer {
  readonly bytes: Buffer
  /** An earlier try of the same call may have been carried out. */
  readonly perhapsBefore: boolean
}

/** A call that failed for good. `code` is gRPC's, or 0 when no member answered. */
export class EtcdFailure extends Error {
  override readonly name = 'EtcdFailure'
  readonly code: number
  /** It may have been carried out all the same. */
  readonly perhaps: boolean

  constructor(text: string, code: number, perhaps: boolean) {
    super(text)
    this.code = code
    this.perhaps = perhaps
  }
}

export const grpc = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const

type Verdict = 'final' | 'elsewhere' | 'login' | 'unclear'

/** What etcd says when it surely did nothing, and what to do about it. */
const refusals: readonly (readonly [RegExp, Verdict])[] = [
  [/etcdserver: no leader/, 'elsewhere'],
  [/raft proposal dropped/, 'elsewhere'],
  [/etcdserver: too many requests/, 'elsewhere'],
  [/etcdserver: rpc not supported for learner/, 'elsewhere'],
  [/etcdserver: invalid auth token/, 'login'],
  [/etcdserver: (revision of auth store|auth: revision in header) is old/, 'login'],
  [/etcdserver: user name is empty/, 'login'],
]
const unclearCodes: ReadonlySet<number> = new Set([
  grpc.cancelled,
  grpc.unknown,
  grpc.deadlineExceeded,
  grpc.aborted,
  grpc.internal,
  grpc.unavailable,
  grpc.dataLoss,
])

function judge({ kind, code, message }: CallFailure): Verdict {
  if (kind === 'unsent') return 'elsewhere'
  if (kind === 'unclear') return 'unclear'
  const known = refusals.find(([words]) => words.test(message))
  return known?.[1] ?? (unclearCodes.has(code) ? 'unclear' : 'final')
}

interface Member {
  readonly endpoint: Endpoint
  connection: Connection | undefined
  opening: Promise<Connection> | undefined
  /** Others are asked first until then. */
  avoidUntilMs: number
  problem: string | undefined
}

const oldest = [3, 4, 0] as const
const recommended = [3, 5, 24] as const
const statusMs = 1_000
const loginMs = 5_000
const avoidMs = 3_000
const maxLogins = 3

export class EtcdClient {
  readonly #options: ClientOptions
  readonly #members: Member[]
  readonly #stop = new AbortController()
  #preferred = 0
  #token: Promise<string> | undefined
  #clusterId: number | undefined
  #warnedVersion: string | undefined

  constructor(options: ClientOptions) {
    this.#options = options
    const first = Math.floor(Math.random() * options.endpoints.length)
    // Several servers begin with different members.
    const endpoints = [...options.endpoints.slice(first), ...options.endpoints.slice(0, first)]
    this.#members = endpoints.map((endpoint) => ({
      endpoint,
      connection: undefined,
      opening: undefined,
      avoidUntilMs: 0,
      problem: undefined,
    }))
  }

  /** Rejects with EtcdFailure. */
  async call(method: string, body: Buffer, { isRepeatable, tryMs, patienceMs }: CallOptions): Promise<Answer> {
    const untilMs = performance.now() + (patienceMs ?? this.#options.patienceMs)
    let perhaps = false
    let logins = 0
    for (let tries = 1; ; tries++) {
      let connection: Connection | undefined
      try {
        connection = await this.#connect(untilMs)
        const metadata = await this.#metadata(connection)
        const leftMs = Math.max(untilMs - performance.now(), 100)
        return {
          bytes: await connection.unary(method, body, metadata, Math.min(tryMs, leftMs)),
          perhapsBefore: perhaps,
        }
      } catch (error) {
        if (!(error instanceof CallFailure)) throw error
        const verdict = judge(error)
        perhaps ||= verdict === 'unclear'
        if (verdict === 'login') {
          this.#token = undefined
          logins++
        } else if (verdict !== 'final') this.avoid(connection, error.message)
        const isOver = performance.now() >= untilMs || this.#stop.signal.aborted || logins >= maxLogins
        const isFinal = verdict === 'final' || (verdict === 'unclear' && !isRepeatable)
        if (isFinal || isOver) throw new EtcdFailure(error.message, error.code, perhaps)
      }
      // The other members are asked at once; after that, they may need time to choose a leader.
      if (tries >= this.#members.length) await this.#pause(Math.min(25 * tries, 200))
    }
  }

  /** Opens a conversation with a member that has a leader. Rejects with EtcdFailure. */
  async stream(method: string, listener: StreamListener): Promise<{ connection: Connection; stream: CallStream }> {
    try {
      const connection = await this.#connect(performance.now() + this.#options.patienceMs)
      const stream = connection.stream(method, await this.#metadata(connection), listener)
      if (!stream) throw new CallFailure('unsent', `${connection.url} is gone`)
      return { connection, stream }
    } catch (error) {
      if (error instanceof CallFailure) throw new EtcdFailure(error.message, error.code, false)
      throw error
    }
  }

  /** Something went wrong there: the others come first for a while. */
  avoid(connection: Connection | undefined, problem: string): void {
    const member = this.#members.find((one) => connection !== undefined && one.connection === connection)
    if (!member) return
    member.problem = problem
    member.avoidUntilMs = performance.now() + avoidMs
    if (connection?.isUsable === false) member.connection = undefined
  }

  /** The next call logs in anew. */
  forgetLogin(): void {
    this.#token = undefined
  }

  close(): void {
    this.#stop.abort()
    for (const { connection } of this.#members) connection?.close()
  }

  async #connect(untilMs: number): Promise<Connection> {
    for (;;) {
      const nowMs = performance.now()
      const order = this.#members
        .map((member, index) => ({ member, index, turn: this.#turnOf(index), avoided: member.avoidUntilMs > nowMs }))
        .sort((a, b) => Number(a.avoided) - Number(b.avoided) || a.turn - b.turn)
      for (const { member, index } of order) {
        if (this.#stop.signal.aborted) throw new CallFailure('unsent', 'the store is closed')
        try {
          const connection = await this.#open(member)
          this.#preferred = index
          return connection
        } catch (error) {
          member.problem = error instanceof Error ? error.message : String(error)
          member.avoidUntilMs = performance.now() + avoidMs
        }
        if (performance.now() >= untilMs) break
      }
      if (performance.now() >= untilMs) throw new CallFailure('unsent', this.#problems())
      await this.#pause(100)
    }
  }

  #turnOf(index: number): number {
    return (index - this.#preferred + this.#members.length) % this.#members.length
  }

  #problems(): string {
    const problems = new Set(this.#members.map(({ endpoint, problem }) => problem ?? `${endpoint.url}: not tried`))
    return [...problems].join('; ')
  }

  async #open(member: Member): Promise<Connection> {
    if (member.connection?.isUsable) return member.connection
    member.opening ??= this.#check(member.endpoint).finally(() => {
      member.opening = undefined
    })
    member.connection = await member.opening
    if (this.#stop.signal.aborted) member.connection.close()
    return member.connection
  }

  /** A connection to a member that answers, is of the same cluster as the others, and new enough. */
  async #check(endpoint: Endpoint): Promise<Connection> {
    const connection = await Connection.open(endpoint)
    try {
      const { header, version } = decodeStatus(await connection.unary(methods.status, Buffer.alloc(0), {}, statusMs))
      this.#clusterId ??= header.clusterId
      if (header.clusterId !== this.#clusterId)
        throw new Error(`${endpoint.url} belongs to another cluster than the other members: name members of one only`)
      if (isOlder(version, oldest))
        throw new Error(`${endpoint.url} is etcd ${version}: svc3 needs ${oldest.slice(0, 2).join('.')} or later`)
      if (isOlder(version, recommended) && this.#warnedVersion !== version) {
        this.#warnedVersion = version
        this.#options.notice(
          `etcd ${version} at ${endpoint.url} has known faults in watches: upgrade it to ${recommended.join('.')} or later`,
        )
      }
      return connection
    } catch (error) {
      // A member that does not say may still serve: some shims do not know the question.
      if (error instanceof CallFailure && error.kind === 'answered' && judge(error) === 'final') return connection
      connection.close()
      throw error
    }
  }

  async #metadata(connection: Connection): Promise<Metadata> {
    // A member that has lost the others says so at once, instead of keeping the call until its deadline.
    const metadata = { hasleader: 'true' }
    const { credentials } = this.#options
    if (!credentials) return metadata
    this.#token ??= this.#login(connection, credentials, metadata)
    const mine = this.#token
    try {
      const token = await mine
      return token === '' ? metadata : { ...metadata, token }
    } catch (error) {
      if (this.#token === mine) this.#token = undefined
      throw error
    }
  }

  async #login(connection: Connection, credentials: () => Promise<Credentials>, metadata: Metadata): Promise<string> {
    const { user, password } = await credentials()
    try {
      const body = encodeAuthenticate(user, password)
      return decodeToken(await connection.unary(methods.authenticate, body, metadata, loginMs))
    } catch (error) {
      if (error instanceof CallFailure && /authentication is not enabled/.test(error.message)) return ''
      // A login that may have happened has changed nothing.
      if (error instanceof CallFailure && judge(error) === 'unclear') throw new CallFailure('unsent', error.message)
      throw error
    }
  }

  #pause(milliseconds: number): Promise<void> {
    const jittered = milliseconds * (0.5 + Math.random() / 2)
    return sleep(jittered, undefined, { signal: this.#stop.signal }).catch(() => undefined)
  }
}

function isOlder(version: string, than: readonly number[]): boolean {
  const found = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (!found) return false
  const parts = found.slice(1).map(Number)
  const differing = parts.findIndex((part, n) => part !== than[n])
  return differing >= 0 && (parts[differing] ?? 0) < (than[differing] ?? 0)
}
