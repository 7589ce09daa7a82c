// Captures that nodes are uploading, and how much of their content has arrived. The garbage collector keeps content that
// arrived since the oldest of them began. A capture that has been silent for a while is forgotten: its node uploads again
// what was deleted.
const silenceMs = 5 * 60_000

interface RunningCapture {
  readonly startMs: number
  seenMs: number
  receivedBytes: number
}

export class RunningCaptures {
  readonly #running = new Map<string, RunningCapture>()

  /** Whether this much more may arrive for the capture, which may have `maxBytes`. It then counts as received. */
  receives(capture: string, bytes: number, maxBytes: number): boolean {
    const running = this.#seen(capture)
    if (running.receivedBytes + bytes > maxBytes) return false
    running.receivedBytes += bytes
    return true
  }

  reported(capture: string): void {
    this.#seen(capture)
  }

  #seen(capture: string): RunningCapture {
    const nowMs = Date.now()
    const running = this.#running.get(capture) ?? { startMs: nowMs, seenMs: nowMs, receivedBytes: 0 }
    running.seenMs = nowMs
    this.#running.set(capture, running)
    return running
  }

  ended(capture: string): void {
    this.#running.delete(capture)
  }

  /** Content that arrived later than this may belong to a running capture. */
  oldestStartMs(): number {
    const nowMs = Date.now()
    for (const [capture, { seenMs }] of this.#running) if (nowMs - seenMs > silenceMs) this.#running.delete(capture)
    return Math.min(nowMs, ...[...this.#running.values()].map(({ startMs }) => startMs))
  }
}
