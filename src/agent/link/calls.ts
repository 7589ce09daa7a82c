// Calls up the connection that the agent keeps: a line each, those of one turn of the event loop in one message, and whoever
// called is looked up by the number in the answer. When the connection is lost, so are they: callers try again, as they do
// where a request is lost.
import { type AgentAnswer, type AgentCall, longestCall } from '../../api/nodes/agent-connection.ts'
import type { Operation } from '../../api/operation.ts'
import { errorFromAnswer } from '../../client/answer.ts'
import { ConnectionError } from '../../client/transport.ts'

interface Waiting {
  readonly operation: Operation
  readonly signal: AbortSignal
  readonly sentMs: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

export class Calls {
  readonly #address: string
  readonly #send: (message: string) => void
  readonly #waiting = new Map<number, Waiting>()
  /** A listener each, however many calls they have: they live as long as the agent. */
  readonly #signals = new Set<AbortSignal>()
  #lines: string[] = []
  #chars = 0
  #last = 0
  #isLost = false

  /** `send` takes a message for the server at `address`. */
  constructor(address: string, send: (message: string) => void) {
    this.#address = address
    this.#send = send
  }

  /** Undefined when it cannot go this way. */
  call(operation: Operation, body: unknown, signal: AbortSignal): Promise<unknown> | undefined {
    if (this.#isLost) return undefined
    const id = ++this.#last
    const line = JSON.stringify({ id, operation: operation.id, body } satisfies AgentCall)
    if (line.length > longestCall) return undefined
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (signal.aborted) reject(signal.reason)
    else {
      this.#follow(signal)
      this.#waiting.set(id, { operation, signal, sentMs: performance.now(), resolve, reject })
      this.#write(line)
    }
    return promise
  }

  /** An answer that nobody waits for any more is passed over. */
  answered({ id, status, body, retryAfterSeconds }: AgentAnswer): void {
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    this.#waiting.delete(id)
    if (status < 400) waiting.resolve(body)
    else {
      const again = retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds)
      waiting.reject(errorFromAnswer(status, JSON.stringify(body) ?? '', this.#address + waiting.operation.path, again))
    }
  }

  /** Gives up those that were sent before then: whoever called tries again. */
  giveUp(sentBeforeMs: number): void {
    for (const [id, { sentMs, reject }] of this.#waiting) {
      // In the order in which they were sent.
      if (sentMs >= sentBeforeMs) return
      this.#waiting.delete(id)
      reject(this.#error('timeout', 'did not answer in time'))
    }
  }

  /** The connection is gone. */
  lost(): void {
    this.#isLost = true
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#aborted)
    for (const { reject } of this.#waiting.values()) reject(this.#error('lost', 'closed the connection'))
    this.#waiting.clear()
  }

  #error(fault: 'lost' | 'timeout', what: string): ConnectionError {
    return new ConnectionError(fault, this.#address, `${this.#address} ${what}`, 'Check the server log')
  }

  #write(line: string): void {
    if (this.#chars > 0 && this.#chars + line.length > longestCall) this.#flush()
    if (this.#lines.push(line) === 1) setImmediate(this.#flush)
    this.#chars += line.length
  }

  readonly #flush = (): void => {
    if (this.#lines.length > 0 && !this.#isLost) this.#send(this.#lines.join('\n'))
    this.#lines = []
    this.#chars = 0
  }

  #follow(signal: AbortSignal): void {
    if (this.#signals.has(signal)) return
    this.#signals.add(signal)
    signal.addEventListener('abort', this.#aborted, { once: true })
  }

  readonly #aborted = ({ target }: Event): void => {
    for (const [id, { signal, reject }] of this.#waiting) {
      if (signal !== target) continue
      this.#waiting.delete(id)
      reject(signal.reason)
    }
  }
}
