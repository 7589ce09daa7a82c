// The connection to a guest's agent, over QEMU's protocol on the port `org.qemu.guest_agent.0`. Its input is written by a
// guest and untrusted.
import net from 'node:net'
import { jsonObject, type Qmp } from './qmp.ts'
import { agentDevice, agentSocket } from './sockets.ts'

/** The limits of what a guest may send on one connection. A line that is no JSON takes as long as a thousand bytes that are. */
const maxBytes = 262_144
const maxLines = 1_000

/**
 * Whether a program in the guest has the port open, as QEMU knows. A VM that was started by an earlier version may lack
 * the port.
 */
export async function isListening(qmp: Qmp): Promise<boolean> {
  const devices = (await qmp.execute('query-chardev')) as { label?: string; 'frontend-open'?: boolean }[]
  return devices.some((one) => one.label === agentDevice && one['frontend-open'] === true)
}

export type GuestAgentReply = Readonly<Record<string, unknown>>

/** QEMU accepts one connection at a time; another waits until this one is closed. */
export class GuestAgent implements Disposable {
  readonly #socket: net.Socket
  readonly #answers: GuestAgentReply[] = []
  #buffered = ''
  #receivedBytes = 0
  #receivedLines = 0
  #isOver = false
  #heard = Promise.withResolvers<void>()

  constructor(runtime: string, signal?: AbortSignal) {
    this.#socket = net.connect({ path: agentSocket(runtime), ...(signal && { signal }) })
    this.#socket.unref().setEncoding('latin1')
    this.#socket.on('data', (text: string) => this.#receive(text))
    this.#socket.on('error', () => undefined)
    this.#socket.on('close', () => {
      this.#isOver = true
      this.#heard.resolve()
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  send(...commands: readonly string[]): void {
    this.#socket.write(commands.map((execute) => `${JSON.stringify({ execute })}\n`).join(''))
  }

  /** Discards answers to earlier questions, up to the one with this call's number. */
  async synchronize(limitMs: number): Promise<boolean> {
    const id = Math.floor(Math.random() * 2 ** 31)
    const question = JSON.stringify({ execute: 'guest-sync-delimited', arguments: { id } })
    // This byte is invalid JSON and makes a guest agent drop half a command.
    this.#socket.write(Buffer.from(`\xff${question}\n`, 'latin1'))
    const untilMs = performance.now() + limitMs
    for (;;) {
      const answer = await this.answer(untilMs - performance.now())
      if (!answer) return false
      if (answer.return === id) return true
    }
  }

  /** Sends a command and returns its answer; undefined if none comes in time. Skips late answers to `synchronize`. */
  async ask(
    execute: string,
    values: Readonly<Record<string, string | number>>,
    limitMs: number,
  ): Promise<GuestAgentReply | undefined> {
    const untilMs = performance.now() + limitMs
    this.#socket.write(`${JSON.stringify({ execute, arguments: values })}\n`)
    for (;;) {
      const answer = await this.answer(untilMs - performance.now())
      if (typeof answer?.return !== 'number') return answer
    }
  }

  /** Undefined if none comes in time, or the connection is closed. */
  async answer(limitMs: number): Promise<GuestAgentReply | undefined> {
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
    this.#receivedLines += lines.length
    for (const line of lines.slice(0, maxLines)) {
      const answer = jsonObject(line.slice(line.lastIndexOf('\xff') + 1))
      if (answer) this.#answers.push(answer)
    }
    this.#receivedBytes += text.length
    if (this.#receivedBytes > maxBytes || this.#receivedLines > maxLines) this.#socket.destroy()
    this.#heard.resolve()
    this.#heard = Promise.withResolvers()
  }
}
