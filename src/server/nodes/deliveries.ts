// Captures being uploaded by nodes: the collector keeps what arrived since the oldest began. One that has been silent
// for a while does not count; its node is asked again for what is collected then.

const silenceMs = 5 * 60_000

export class Deliveries {
  readonly #underWay = new Map<string, { readonly startMs: number; heardMs: number }>()

  heard(capture: string): void {
    const nowMs = Date.now()
    const known = this.#underWay.get(capture)
    if (known) known.heardMs = nowMs
    else this.#underWay.set(capture, { startMs: nowMs, heardMs: nowMs })
  }

  over(capture: string): void {
    this.#underWay.delete(capture)
  }

  /** Content that arrived later than this may belong to one of them. */
  oldestStartMs(): number {
    const nowMs = Date.now()
    for (const [capture, { heardMs }] of this.#underWay) if (nowMs - heardMs > silenceMs) this.#underWay.delete(capture)
    return Math.min(nowMs, ...[...this.#underWay.values()].map(({ startMs }) => startMs))
  }
}
