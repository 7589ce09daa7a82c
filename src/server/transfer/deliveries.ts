// Captures that nodes are uploading. The garbage collector keeps content that arrived since the oldest of them began. One
// that has been silent for a while does not count: its node uploads again what was deleted.
const silenceMs = 5 * 60_000

export class Deliveries {
  readonly #running = new Map<string, { readonly startMs: number; heardMs: number }>()

  heard(capture: string): void {
    const nowMs = Date.now()
    const known = this.#running.get(capture)
    if (known) known.heardMs = nowMs
    else this.#running.set(capture, { startMs: nowMs, heardMs: nowMs })
  }

  over(capture: string): void {
    this.#running.delete(capture)
  }

  /** Content that arrived later than this may belong to a running capture. */
  oldestStartMs(): number {
    const nowMs = Date.now()
    for (const [capture, { heardMs }] of this.#running) if (nowMs - heardMs > silenceMs) this.#running.delete(capture)
    return Math.min(nowMs, ...[...this.#running.values()].map(({ startMs }) => startMs))
  }
}
