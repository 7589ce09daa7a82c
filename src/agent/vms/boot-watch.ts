// Watches whether the system in a running VM has booted, which is when its SSH server responds. Polls less and less often, and
// reports once when it has booted, or when it has not after some minutes.
import net from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface SshAddress {
  readonly ip: string
  readonly port: number
}

export type SshProbe = (address: SshAddress, signal: AbortSignal) => Promise<boolean>

/** After `limitMs` the system counts as not booted, and is polled every `laterDelayMs`. */
const defaultTimes = { firstDelayMs: 500, maxDelayMs: 15_000, limitMs: 5 * 60_000, laterDelayMs: 60_000 }
const greetingMs = 5_000

export class BootWatch {
  readonly #probe: SshProbe
  readonly #changed: () => void
  readonly #times: typeof defaultTimes
  #watching: { readonly address: SshAddress; readonly stop: AbortController } | undefined
  #booted: boolean | undefined

  constructor(probe: SshProbe, changed: () => void, times = defaultTimes) {
    this.#times = times
    this.#probe = probe
    this.#changed = changed
  }

  /** Undefined if unknown yet, or if the VM does not run. */
  get booted(): boolean | undefined {
    return this.#booted
  }

  /** Watches the VM at this address; undefined stops watching. Does nothing if the address is watched already. */
  follow(address: SshAddress | undefined, maxMs = this.#times.maxDelayMs): void {
    const known = this.#watching?.address
    if (address && known?.ip === address.ip && known.port === address.port) return
    this.#watching?.stop.abort()
    this.#watching = undefined
    this.#booted = undefined
    if (!address) return
    this.#watching = { address, stop: new AbortController() }
    void this.#watch(address, maxMs, this.#watching.stop.signal)
  }

  async #watch(address: SshAddress, maxMs: number, signal: AbortSignal): Promise<void> {
    const { firstDelayMs, limitMs, laterDelayMs } = this.#times
    const sinceMs = performance.now()
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, maxMs)) {
      const isUp = await this.#probe(address, signal)
      if (signal.aborted) return
      const isLate = performance.now() - sinceMs >= limitMs
      if (isUp || (isLate && this.#booted === undefined)) {
        this.#booted = isUp
        this.#changed()
      }
      if (isUp) return
      await setTimeout(isLate ? laterDelayMs : delayMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
  }
}

/** Whether an SSH server sends its greeting within some seconds. */
export const probeSsh: SshProbe = ({ ip, port }, signal) =>
  new Promise((resolve) => {
    const socket = net.connect({ host: ip, port, timeout: greetingMs })
    const end = (hasGreeted: boolean): void => {
      signal.removeEventListener('abort', leave)
      socket.destroy()
      resolve(hasGreeted)
    }
    const leave = (): void => end(false)
    signal.addEventListener('abort', leave, { once: true })
    socket.once('data', (chunk: Buffer) => end(chunk.toString('latin1', 0, 4) === 'SSH-'))
    for (const event of ['error', 'timeout', 'close'] as const) socket.once(event, leave)
  })
