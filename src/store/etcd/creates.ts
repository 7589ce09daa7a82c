// Creates on etcd. Those of one moment share a transaction: the call, etcd's log and the flush to disk cost for sixty little
// more than for one. Each is compared and written for itself and has its own place in the revision that they share; one that
// comes alone goes at once, as it is. Shims know no such transactions, and data of the first format no such places.

import { alreadyExists } from '../faults.ts'
import { type EtcdCalls, once } from './calls.ts'
import { EtcdFailure } from './client.ts'
import { recogniseCreate } from './lost-write.ts'
import { decodeTogether, encodeCreate, encodeTogether, methods } from './protocol.ts'
import { newOperationId, type Standing, seal } from './records.ts'
import { grpc } from './verdict.ts'

interface Create {
  readonly key: string
  readonly op: string
  readonly text: string
}

interface Waiting extends Create {
  readonly untilMs: number
  readonly settle: PromiseWithResolvers<Standing>
}

/** So many calls are under way before creates wait for each other. */
const lanes = 2
/** Half of what etcd takes in one transaction (`--max-txn-ops`). */
const maxTogether = 64
/** A third of what etcd takes in one request; one alone may be larger. */
const maxTogetherBytes = 500_000
/** Said of a transaction, of which nothing was carried out: each may fare better by itself. */
const refusals = /too many operations|too large|larger than max|permission denied|is not (supported|implemented)/

export class Creates {
  readonly #calls: EtcdCalls
  readonly #patienceMs: number
  #waiting: Waiting[] = []
  #underWay = 0

  constructor(calls: EtcdCalls, patienceMs: number) {
    this.#calls = calls
    this.#patienceMs = patienceMs
  }

  /** `before` is any revision of etcd from before the call. Throws AlreadyExists and EtcdFailure. */
  async create(key: string, text: string, before: number): Promise<Standing> {
    const create = { key, text, op: newOperationId() }
    try {
      return await this.#send(create)
    } catch (error) {
      if (!(error instanceof EtcdFailure && error.perhaps)) throw error
      return await recogniseCreate(this.#calls, { ...create, before, failure: error })
    }
  }

  #send(create: Create): Promise<Standing> {
    if (!this.#calls.layout.isShared) return this.#alone(create, this.#patienceMs)
    if (this.#underWay < lanes) return this.#inLane(() => this.#alone(create, this.#patienceMs))
    const settle = Promise.withResolvers<Standing>()
    this.#waiting.push({ ...create, settle, untilMs: performance.now() + this.#patienceMs })
    return settle.promise
  }

  async #inLane<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++
    try {
      return await work()
    } finally {
      this.#underWay--
      const group = this.#takeGroup()
      if (group.length > 0) void this.#inLane(() => this.#together(group))
    }
  }

  async #alone({ key, op, text }: Create, patienceMs: number): Promise<Standing> {
    const { layout } = this.#calls
    const { txn } = await this.#calls.txn(encodeCreate(layout.key(key), seal(op, text)), { ...once, patienceMs })
    if (!txn.succeeded) throw alreadyExists(key)
    return { revision: txn.header.revision }
  }

  /** Of those that wait, the first of each key, as many as may go together. Who has waited too long is told. */
  #takeGroup(): Waiting[] {
    const group = new Map<string, Waiting>()
    const left: Waiting[] = []
    const nowMs = performance.now()
    let bytes = 0
    for (const each of this.#waiting) {
      if (each.untilMs <= nowMs) {
        each.settle.reject(new EtcdFailure('too many calls are waiting for it', grpc.unavailable, false))
        continue
      }
      const ownBytes = Buffer.byteLength(each.text)
      const isFull = group.size >= maxTogether || (group.size > 0 && bytes + ownBytes > maxTogetherBytes)
      if (isFull || group.has(each.key)) left.push(each)
      else {
        group.set(each.key, each)
        bytes += ownBytes
      }
    }
    this.#waiting = left
    return [...group.values()]
  }

  /** Never rejects: each of those who wait is told. */
  async #together(group: readonly Waiting[]): Promise<void> {
    const leftMs = ({ untilMs }: Waiting): number => untilMs - performance.now()
    const eachAlone = (): Promise<unknown> =>
      Promise.all(group.map((each) => this.#alone(each, leftMs(each)).then(each.settle.resolve, each.settle.reject)))
    if (group.length === 1) return void (await eachAlone())
    const { client, layout } = this.#calls
    // Of who has waited least: one that is near its end must not cut short what is done for the others.
    const patienceMs = Math.max(...group.map(leftMs))
    const txns = group.map(({ key, op, text }, place) => encodeCreate(layout.key(key), seal(op, text, place)))
    try {
      const { bytes } = await client.call(methods.txn, encodeTogether(txns, layout.syncKey), { ...once, patienceMs })
      const { header, succeeded } = decodeTogether(bytes)
      if (succeeded.length !== group.length) throw new EtcdFailure('its answer lacks some of them', grpc.unknown, true)
      for (const [place, { key, settle }] of group.entries()) {
        if (succeeded[place]) settle.resolve({ revision: header.revision, place })
        else settle.reject(alreadyExists(key))
      }
    } catch (error) {
      if (error instanceof EtcdFailure && !error.perhaps && refusals.test(error.message)) await eachAlone()
      else for (const { settle } of group) settle.reject(error)
    }
  }
}
