// Watches whether the guest of a running VM has booted and can be reached, both of which show when its SSH server responds.
//
// Polls less and less often until the guest is reached, and then not at all. `recheck` starts it again after a connection to
// the guest failed. While a guest boots, failures that end by themselves are not reported.
import net from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import {
  type GuestReach,
  isUnreachable,
  maxReachMessage,
  type Unreachable,
  type UnreachableReason,
} from '../../api/vms/guest-reach.ts'

export interface SshAddress {
  readonly ip: string
  readonly port: number
}

export type SshProbe = (address: SshAddress, signal: AbortSignal) => Promise<GuestReach>

/**
 * A guest that was not reached after `settleMs` counts as unreachable, after `limitMs` also as not booted, and is then
 * polled every `laterDelayMs`.
 */
const defaultTimes = {
  firstDelayMs: 500,
  maxDelayMs: 15_000,
  settleMs: 60_000,
  limitMs: 5 * 60_000,
  laterDelayMs: 60_000,
}
const greetingMs = 5_000

/** Waiting does not help, so these count at once. */
const lasting: ReadonlySet<UnreachableReason> = new Set(['BlockedByLocalNetwork', 'OtherGuest'])

interface Watched {
  readonly address: SshAddress
  readonly maxDelayMs: number
  readonly stop: AbortController
  /** The reasons that were reported. */
  readonly reported: Set<UnreachableReason>
  isProbing: boolean
}

export class GuestWatch {
  readonly #probe: SshProbe
  readonly #changed: (problem: Unreachable | undefined) => void
  readonly #times: typeof defaultTimes
  #watched: Watched | undefined
  #booted: boolean | undefined
  #reach: GuestReach | undefined

  /** `changed` gets the problem if it is the first of its reason since the VM started. */
  constructor(probe: SshProbe, changed: (problem: Unreachable | undefined) => void, times = defaultTimes) {
    this.#times = times
    this.#probe = probe
    this.#changed = changed
  }

  /** Undefined if unknown yet, or if the VM does not run. */
  get booted(): boolean | undefined {
    return this.#booted
  }

  /** Undefined if unknown yet, or if the VM does not run. */
  get reach(): GuestReach | undefined {
    return this.#reach
  }

  /** Watches the VM at this address; undefined stops watching. Does nothing if the address is watched already. */
  follow(address: SshAddress | undefined, maxDelayMs = this.#times.maxDelayMs): void {
    const known = this.#watched?.address
    if (address && known?.ip === address.ip && known.port === address.port) return
    this.#watched?.stop.abort()
    this.#watched = undefined
    this.#booted = undefined
    this.#reach = undefined
    if (!address) return
    this.#watched = { address, maxDelayMs, stop: new AbortController(), reported: new Set(), isProbing: false }
    this.recheck()
  }

  /** Polls again, because a connection to the guest failed. */
  recheck(): void {
    if (this.#watched && !this.#watched.isProbing) void this.#poll(this.#watched)
  }

  async #poll(watched: Watched): Promise<void> {
    const { firstDelayMs, limitMs, laterDelayMs } = this.#times
    const { signal } = watched.stop
    const sinceMs = performance.now()
    watched.isProbing = true
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, watched.maxDelayMs)) {
      const reach = await this.#probe(watched.address, signal)
      if (signal.aborted) return
      const elapsedMs = performance.now() - sinceMs
      this.#note(watched, reach, elapsedMs)
      if (!isUnreachable(reach)) break
      const pauseMs = elapsedMs >= limitMs ? laterDelayMs : delayMs
      await setTimeout(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted) return
    }
    watched.isProbing = false
  }

  #note({ reported }: Watched, reach: GuestReach, elapsedMs: number): void {
    const { settleMs, limitMs } = this.#times
    const before = this.#reach
    const hadBooted = this.#booted
    if (!isUnreachable(reach)) this.#booted = true
    else if (elapsedMs >= limitMs) this.#booted ??= false
    const isBooting = before === undefined && elapsedMs < settleMs
    if (!isUnreachable(reach) || !isBooting || lasting.has(reach.reason)) this.#reach = cut(reach)
    const now = this.#reach
    if (this.#booted === hadBooted && isDeepStrictEqual(now, before)) return
    const problem = isUnreachable(now) && !reported.has(now.reason) ? now : undefined
    if (problem) reported.add(problem.reason)
    this.#changed(problem)
  }
}

const cut = (reach: GuestReach): GuestReach =>
  isUnreachable(reach) ? { ...reach, message: reach.message.slice(0, maxReachMessage) } : reach

/** Whether an SSH server sends its greeting within some seconds. Forwarders accept connections before the guest does. */
export const probeSsh: SshProbe = ({ ip, port }, signal) =>
  new Promise((resolve) => {
    const socket = net.connect({ host: ip, port, timeout: greetingMs })
    const end = (reach: GuestReach): void => {
      signal.removeEventListener('abort', leave)
      socket.destroy()
      resolve(reach)
    }
    const fail = (reason: UnreachableReason, message: string): void => end({ reason, message })
    const leave = (): void => fail('NoAnswer', 'the probe was stopped')
    signal.addEventListener('abort', leave, { once: true })
    socket.once('data', (chunk: Buffer) =>
      chunk.toString('latin1', 0, 4) === 'SSH-'
        ? end({ ok: true })
        : fail('NoAnswer', 'what answers on port 22 is not an SSH server'),
    )
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      code === 'ECONNRESET' ? closed() : fail('NoRoute', `the node does not forward the SSH port: ${message}`),
    )
    const closed = (): void => fail('Refused', 'the connection was closed before an SSH greeting')
    socket.once('timeout', () => fail('NoAnswer', `no SSH greeting within ${greetingMs / 1_000} s`))
    socket.once('close', closed)
  })
