// Captures that nodes are uploading. The garbage collector keeps content that arrived since the oldest of them began.
// One that has been silent for a while does not count: its node uploads again what was deleted.
const silenceMs = 5 * 60_000

export class RunningCaptures {
  readonly #running = new Map<string, { readonly startMs: number; reportedMs: number }>()

  reported(capture: string): void {
    const nowMs = Date.now()
    const known = this.#running.get(capture)
    if (known) known.reportedMs = nowMs
    else this.#running.set(capture, { startMs: nowMs, reportedMs: nowMs })
  }

  ended(capture: string): void {
    this.#running.delete(capture)
  }

  /** Content that arrived later than this may belong to a running capture. */
  oldestStartMs(): number {
    const nowMs = Date.now()
    for (const [capture, { reportedMs }] of this.#running)
      if (nowMs - reportedMs > silenceMs) this.#running.delete(capture)
    return Math.min(nowMs, ...[...this.#running.values()].map(({ startMs }) => startMs))
  }
}
