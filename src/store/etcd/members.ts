// The members of the cluster: connections to them, the preferred one, and checks that they belong together.
import { setTimeout as sleep } from 'node:timers/promises'
import { CallFailure, type Endpoint, EtcdConnection } from './connection.ts'
import { decodeStatus, methods } from './protocol.ts'
import { judge } from './verdict.ts'

interface Member {
  readonly endpoint: Endpoint
  connection: EtcdConnection | undefined
  opening: Promise<EtcdConnection> | undefined
  /** Until then, other members are preferred. */
  avoidUntilMs: number
  problem: string | undefined
}

const oldest = [3, 4, 0] as const
const recommended = [3, 5, 24] as const
const statusMs = 1_000
const avoidMs = 3_000
const headStartMs = 250

export class Members {
  readonly #members: readonly Member[]
  readonly #notice: (text: string) => void
  readonly #stopping: AbortSignal
  #preferred = 0
  #clusterId: number | undefined
  #warnedVersion: string | undefined

  constructor(endpoints: readonly Endpoint[], notice: (text: string) => void, stopping: AbortSignal) {
    this.#notice = notice
    this.#stopping = stopping
    // Different servers begin with different members.
    const first = Math.floor(Math.random() * endpoints.length)
    this.#members = [...endpoints.slice(first), ...endpoints.slice(0, first)].map((endpoint) => ({
      endpoint,
      connection: undefined,
      opening: undefined,
      avoidUntilMs: 0,
      problem: undefined,
    }))
  }

  get count(): number {
    return this.#members.length
  }

  /** Makes other members preferred for a while. */
  avoid(connection: EtcdConnection | undefined, problem: string): void {
    const member = this.#members.find((one) => connection !== undefined && one.connection === connection)
    if (!member) return
    member.problem = problem
    member.avoidUntilMs = performance.now() + avoidMs
    if (connection?.isUsable === false) member.connection = undefined
  }

  close(): void {
    for (const { connection } of this.#members) connection?.close()
  }

  /**
   * Prefers the leader. Other members forward writes to it, and when it hands over leadership, as it does before it
   * stops, forwarded writes are lost without an error. For writes sent to the leader itself, it returns an error.
   */
  async follow(): Promise<void> {
    const first = this.#preferred
    for (let turn = 0; turn < this.count && this.count > 1; turn++) {
      const index = (first + turn) % this.count
      const member = this.#members[index]
      if (!member || member.avoidUntilMs > performance.now() || !(await this.#leads(member).catch(() => false)))
        continue
      this.#preferred = index
      return
    }
  }

  async #leads(member: Member): Promise<boolean> {
    const connection = await this.#open(member)
    return decodeStatus(await connection.unary(methods.status, Buffer.alloc(0), {}, statusMs)).isLeader
  }

  /** The connection to the preferred member, if it is usable. */
  usual(): EtcdConnection | undefined {
    const member = this.#members[this.#preferred]
    return member?.connection?.isUsable && member.avoidUntilMs <= performance.now() ? member.connection : undefined
  }

  /** A connection to the best available member. Rejects with CallFailure after `untilMs`. */
  async connect(untilMs: number): Promise<EtcdConnection> {
    for (;;) {
      const usual = this.usual()
      if (usual) return usual
      const nowMs = performance.now()
      const order = this.#members
        .map((member, index) => ({ member, index, turn: this.#turnOf(index), avoided: member.avoidUntilMs > nowMs }))
        .sort((a, b) => Number(a.avoided) - Number(b.avoided) || a.turn - b.turn)
      const connection = await this.#openFirst(order)
      if (connection) return connection
      if (this.#stopping.aborted) throw new CallFailure('unsent', 'the store is closed')
      if (performance.now() >= untilMs) throw new CallFailure('unsent', this.#problems())
      await this.pause(100)
    }
  }

  /**
   * The first connection that opens, or undefined. The next member is tried in parallel after a moment, because a
   * paused member accepts connections and stays silent.
   */
  #openFirst(
    order: readonly { readonly member: Member; readonly index: number }[],
  ): Promise<EtcdConnection | undefined> {
    const { promise, resolve } = Promise.withResolvers<EtcdConnection | undefined>()
    const waiting = [...order]
    let opening = 0
    let isOver = false
    let timer: NodeJS.Timeout | undefined
    const end = (connection?: EtcdConnection): void => {
      isOver = true
      clearTimeout(timer)
      resolve(connection)
    }
    const next = (): void => {
      clearTimeout(timer)
      if (isOver) return
      const begun = this.#stopping.aborted ? undefined : waiting.shift()
      if (!begun) {
        if (opening === 0 || this.#stopping.aborted) end()
        return
      }
      opening++
      timer = setTimeout(next, headStartMs)
      this.#open(begun.member).then(
        (connection) => {
          if (isOver) return
          this.#preferred = begun.index
          end(connection)
        },
        (error: unknown) => {
          opening--
          begun.member.problem = error instanceof Error ? error.message : String(error)
          begun.member.avoidUntilMs = performance.now() + avoidMs
          next()
        },
      )
    }
    next()
    return promise
  }

  #turnOf(index: number): number {
    return (index - this.#preferred + this.#members.length) % this.#members.length
  }

  #problems(): string {
    const problems = new Set(this.#members.map(({ endpoint, problem }) => problem ?? `${endpoint.url}: not tried`))
    return [...problems].join('; ')
  }

  async #open(member: Member): Promise<EtcdConnection> {
    if (member.connection?.isUsable) return member.connection
    member.opening ??= this.#check(member.endpoint).finally(() => {
      member.opening = undefined
    })
    member.connection = await member.opening
    if (this.#stopping.aborted) member.connection.close()
    return member.connection
  }

  /** Connects to a member and checks that it answers, belongs to the same cluster and is new enough. */
  async #check(endpoint: Endpoint): Promise<EtcdConnection> {
    const connection = await EtcdConnection.open(endpoint)
    try {
      const { header, version } = decodeStatus(await connection.unary(methods.status, Buffer.alloc(0), {}, statusMs))
      this.#clusterId ??= header.clusterId
      if (header.clusterId !== this.#clusterId)
        throw new Error(`${endpoint.url} belongs to another cluster: name members of one cluster only`)
      if (isOlder(version, oldest))
        throw new Error(`${endpoint.url} is etcd ${version}: svc3 needs ${oldest.slice(0, 2).join('.')} or later`)
      if (isOlder(version, recommended) && this.#warnedVersion !== version) {
        this.#warnedVersion = version
        this.#notice(
          `etcd ${version} at ${endpoint.url} has known bugs in watches: upgrade it to ${recommended.join('.')} or later`,
        )
      }
      return connection
    } catch (error) {
      // A member may refuse to tell its version and still serve.
      if (error instanceof CallFailure && error.kind === 'answered' && judge(error) === 'final') return connection
      connection.close()
      throw error
    }
  }

  pause(milliseconds: number): Promise<void> {
    const jittered = milliseconds * (0.5 + Math.random() / 2)
    return sleep(jittered, undefined, { signal: this.#stopping }).catch(() => undefined)
  }
}

function isOlder(version: string, than: readonly number[]): boolean {
  const found = /^(\d+)\.(\d+)\.(\d+)/.exec(version)
  if (!found) return false
  const parts = found.slice(1).map(Number)
  const differing = parts.findIndex((part, n) => part !== than[n])
  return differing >= 0 && (parts[differing] ?? 0) < (than[differing] ?? 0)
}
