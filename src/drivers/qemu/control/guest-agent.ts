// Asks a guest to write what it holds back to its disk, by the protocol of QEMU's guest agent, before the disk is captured.
// Freeze and thaw are sent as one message: whoever dies here, no guest is left with file systems that nobody thaws.
import net from 'node:net'
import type { Qmp } from './qmp.ts'
import { agentDevice, agentSocket } from './sockets.ts'

/**
 * `unheard`: nobody in the guest answers, as in most. `stuck`: it was asked to freeze its file systems and has not said since
 * that they are thawed; memory of such a guest is not worth having.
 */
type Flushed = 'flushed' | 'unheard' | 'stuck'

interface Limits {
  /** For whoever listens to say so. */
  readonly answerMs: number
  /** For all that was not written yet to be on the disk. */
  readonly flushMs: number
}
const limits: Limits = { answerMs: 2_000, flushMs: 10_000 }
const thawTries = 3
/** Of all that a guest says. */
const mostBytes = 1_048_576

/** The guest runs. Never longer than its time limits, and without any waiting where no program has opened the port. */
export async function flushGuest(
  qmp: Qmp,
  runtime: string,
  signal: AbortSignal,
  { answerMs, flushMs } = limits,
): Promise<Flushed> {
  if (!(await isListening(qmp))) return 'unheard'
  {
    using guest = new GuestAgent(agentSocket(runtime), signal)
    if (!(await guest.synchronize(answerMs))) return 'unheard'
    guest.send('guest-fsfreeze-freeze', 'guest-fsfreeze-thaw')
    const frozen = await guest.answer(flushMs)
    if (frozen && (await guest.answer(answerMs))) return 'return' in frozen ? 'flushed' : 'unheard'
  }
  // Not by the caller's signal: it must not be left so.
  for (let tries = 0; tries < thawTries; tries++) {
    using guest = new GuestAgent(agentSocket(runtime))
    if (!(await guest.synchronize(answerMs))) continue
    guest.send('guest-fsfreeze-thaw')
    if ('return' in ((await guest.answer(answerMs)) ?? {})) return 'flushed'
  }
  return 'stuck'
}

/** QEMU knows whether a program in the guest has the port open. A VM that was started before there was one has none. */
async function isListening(qmp: Qmp): Promise<boolean> {
  const devices = (await qmp.execute('query-chardev')) as { label?: string; 'frontend-open'?: boolean }[]
  return devices.some((one) => one.label === agentDevice && one['frontend-open'] === true)
}

type Answer = Readonly<Record<string, unknown>>

/** One connection. What comes out of it was written by a guest: at most so much of it is looked at. */
class GuestAgent implements Disposable {
  readonly #socket: net.Socket
  readonly #answers: Answer[] = []
  #buffered = ''
  #receivedBytes = 0
  #isOver = false
  #heard = Promise.withResolvers<void>()

  constructor(place: string, signal?: AbortSignal) {
    this.#socket = net.connect({ path: place, ...(signal && { signal }) })
    this.#socket.unref().setEncoding('latin1')
    this.#socket.on('data', (text: string) => this.#receive(text))
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => {
      this.#isOver = true
      this.#heard.resolve()
    })
  }

  send(...commands: readonly string[]): void {
    this.#socket.write(commands.map((execute) => `${JSON.stringify({ execute })}\n`).join(''))
  }

  /** Answers to questions of others may still be on their way: all up to the one with our number are passed over. */
  async synchronize(limitMs: number): Promise<boolean> {
    const id = Math.floor(Math.random() * 2 ** 31)
    const question = JSON.stringify({ execute: 'guest-sync-delimited', arguments: { id } })
    // The first byte is no JSON: at it a guest agent drops half a command.
    this.#socket.write(Buffer.from(`\xff${question}\n`, 'latin1'))
    const untilMs = performance.now() + limitMs
    for (;;) {
      const answer = await this.answer(untilMs - performance.now())
      if (!answer) return false
      if (answer.return === id) return true
    }
  }

  /** Undefined: none in time, or none will come. */
  async answer(limitMs: number): Promise<Answer | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    let isLate = false
    late.then(() => {
      isLate = true
    })
    try {
      for (;;) {
        const answer = this.#answers.shift()
        if (answer || this.#isOver || isLate) return answer
        await Promise.race([this.#heard.promise, late])
      }
    } finally {
      clearTimeout(timer)
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #receive(text: string): void {
    const lines = (this.#buffered + text).split('\n')
    this.#buffered = lines.pop() ?? ''
    for (const line of lines) {
      const answer = parse(line.slice(line.lastIndexOf('\xff') + 1))
      if (answer) this.#answers.push(answer)
    }
    this.#receivedBytes += text.length
    if (this.#receivedBytes > mostBytes) this.#socket.destroy()
    this.#heard.resolve()
    this.#heard = Promise.withResolvers()
  }
}

function parse(line: string): Answer | undefined {
  try {
    const answer: unknown = JSON.parse(line)
    return typeof answer === 'object' && answer !== null ? (answer as Answer) : undefined
  } catch {
    return undefined
  }
}
