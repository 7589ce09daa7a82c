// Captures that nodes are uploading, and how much of their content has arrived. The garbage collector keeps content that arrived since the oldest of them began.
// One that has been silent for a while does not count: its node uploads again what was deleted.
const silenceMs = 5 * 60_000

export class RunningCaptures {
  readonly #running = new Map<string, { readonly startMs: number; reportedMs: number }>()
  /** By capture. Starts again at 0 when the server does. */
  readonly #receivedBytes = new Map<string, number>()

  /** Whether this much more may arrive for the capture, which may have `mostBytes`. It then counts as received. */
  receives(capture: string, bytes: number, mostBytes: number): boolean {
    const sum = (this.#receivedBytes.get(capture) ?? 0) + bytes
    if (sum > mostBytes) return false
    this.#receivedBytes.set(capture, sum)
    return true
  }

  reported(capture: string): void {
    const nowMs = Date.now()
    const known = this.#running.get(capture)
    if (known) known.reportedMs = nowMs
    else this.#running.set(capture, { startMs: nowMs, reportedMs: nowMs })
  }

  ended(capture: string): void {
    this.#running.delete(capture)
    this.#receivedBytes.delete(capture)
  }

  /** Content that arrived later than this may belong to a running capture. */
  oldestStartMs(): number {
    const nowMs = Date.now()
    for (const [capture, { reportedMs }] of this.#running)
      if (nowMs - reportedMs > silenceMs) this.#running.delete(capture)
    return Math.min(nowMs, ...[...this.#running.values()].map(({ startMs }) => startMs))
  }
}
