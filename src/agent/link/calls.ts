// Calls over the connection that an agent keeps, a line each. Answers carry the number of their call. Calls fail when the
// connection is lost, as requests do; callers retry.
import { type AgentAnswer, type AgentCall, longestCall } from '../../api/nodes/agent-connection.ts'
import type { Operation } from '../../api/operation.ts'
import { errorFromAnswer } from '../../client/answer.ts'
import { ConnectionError } from '../../client/transport.ts'
import { orAborted } from '../../platform/retry.ts'

interface PendingCall {
  readonly operation: Operation
  readonly sentMs: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

export class Calls {
  readonly #address: string
  readonly #send: (message: string) => void
  /** In the order in which they were sent. */
  readonly #pending = new Map<number, PendingCall>()
  #lastId = 0
  #isLost = false

  /** `send` takes a message for the server at `address`. */
  constructor(address: string, send: (message: string) => void) {
    this.#address = address
    this.#send = send
  }

  /** Undefined if the connection is lost, or if the call is too long for it. */
  call(operation: Operation, body: unknown, signal: AbortSignal): Promise<unknown> | undefined {
    if (this.#isLost) return undefined
    const id = ++this.#lastId
    const line = JSON.stringify({ id, operation: operation.id, body } satisfies AgentCall)
    if (line.length > longestCall) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (!signal.aborted) {
      this.#pending.set(id, { operation, sentMs: performance.now(), resolve, reject })
      this.#send(line)
    }
    return orAborted(promise, signal)
  }

  answered({ id, status, body, retryAfterSeconds }: AgentAnswer): void {
    const call = this.#pending.get(id)
    if (!call) return
    this.#pending.delete(id)
    if (status < 400) {
      call.resolve(body)
      return
    }
    const retryAfter = retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds)
    call.reject(errorFromAnswer(status, JSON.stringify(body) ?? '', this.#address + call.operation.path, retryAfter))
  }

  /** Fails calls that were sent before this time. */
  giveUp(sentBeforeMs: number): void {
    for (const [id, { sentMs, reject }] of this.#pending) {
      if (sentMs >= sentBeforeMs) return
      this.#pending.delete(id)
      reject(this.#error('timeout', 'did not answer in time'))
    }
  }

  /** Fails all calls, because the connection was closed. */
  lost(): void {
    this.#isLost = true
    for (const { reject } of this.#pending.values()) reject(this.#error('lost', 'closed the connection'))
    this.#pending.clear()
  }

  #error(fault: 'lost' | 'timeout', what: string): ConnectionError {
    return new ConnectionError(fault, this.#address, `${this.#address} ${what}`, 'Check the server log')
  }
}
