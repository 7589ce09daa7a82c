// Whether the system in a running VM has come up: its SSH server greets. Asked apart from all work on the VM, less and less
// often, and told once when it does, or when it has not for minutes.
import net from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface SshPlace {
  readonly ip: string
  readonly port: number
}

export type Greets = (place: SshPlace, signal: AbortSignal) => Promise<boolean>

/** After `limitMs` it counts as not booted, and is asked once in a while. */
const usual = { firstDelayMs: 500, maxDelayMs: 15_000, limitMs: 5 * 60_000, laterDelayMs: 60_000 }
const greetingMs = 5_000

export class BootWatch {
  readonly #greets: Greets
  readonly #changed: () => void
  readonly #times: typeof usual
  #watching: { readonly place: SshPlace; readonly stop: AbortController } | undefined
  #booted: boolean | undefined

  constructor(greets: Greets, changed: () => void, times = usual) {
    this.#times = times
    this.#greets = greets
    this.#changed = changed
  }

  /** Undefined: not known yet, or it does not run. */
  get booted(): boolean | undefined {
    return this.#booted
  }

  /** `place`: of a VM that runs. The same one again changes nothing. `maxMs`: a slot is waited for by whoever asks next. */
  follow(place: SshPlace | undefined, maxMs = this.#times.maxDelayMs): void {
    const known = this.#watching?.place
    if (place && known?.ip === place.ip && known.port === place.port) return
    this.#watching?.stop.abort()
    this.#watching = undefined
    this.#booted = undefined
    if (!place) return
    this.#watching = { place, stop: new AbortController() }
    void this.#watch(place, maxMs, this.#watching.stop.signal)
  }

  async #watch(place: SshPlace, maxMs: number, signal: AbortSignal): Promise<void> {
    const { firstDelayMs, limitMs, laterDelayMs } = this.#times
    const sinceMs = performance.now()
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, maxMs)) {
      const greets = await this.#greets(place, signal)
      if (signal.aborted) return
      const isLate = performance.now() - sinceMs >= limitMs
      if (greets || (isLate && this.#booted === undefined)) {
        this.#booted = greets
        this.#changed()
      }
      if (greets) return
      await setTimeout(isLate ? laterDelayMs : delayMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
  }
}

/** Whether an SSH server says its first line there, within seconds. */
export const sshGreets: Greets = ({ ip, port }, signal) =>
  new Promise((resolve) => {
    const socket = net.connect({ host: ip, port, timeout: greetingMs })
    const end = (greets: boolean): void => {
      signal.removeEventListener('abort', leave)
      socket.destroy()
      resolve(greets)
    }
    const leave = (): void => end(false)
    signal.addEventListener('abort', leave, { once: true })
    socket.once('data', (chunk: Buffer) => end(chunk.toString('latin1', 0, 4) === 'SSH-'))
    for (const event of ['error', 'timeout', 'close'] as const) socket.once(event, leave)
  })
