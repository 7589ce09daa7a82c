// Reports of VMs to the server: the newest of each VM, in batches, repeated until the server has taken them.
import { ApiError } from '../../api/errors.ts'
import type { VmReport } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { retryDelay, retryPolicies, wait } from '../../platform/retry.ts'

interface ReportsOptions {
  /** Sends a batch and returns the uids that the server does not know. */
  send(vms: readonly VmReport[], signal: AbortSignal): Promise<readonly string[]>
  unknown(uid: string): void
  readonly log: Log
}

const maxBatch = 500
const maxTextLength = 8_000
/** Progress is reported only of work that takes longer, because a burst of VMs would send several reports of each. */
const progressAfterMs = 1_000

export class Reports {
  readonly #options: ReportsOptions
  /** `text` is what the next report of the VM is compared with. */
  readonly #newest = new Map<string, { readonly report: VmReport; readonly text: string }>()
  readonly #due = new Set<string>()
  readonly #stopping = new AbortController()
  #progress = new Map<string, () => VmReport>()
  #progressTimer: NodeJS.Timeout | undefined
  #pause = new AbortController()
  #sending: Promise<void> | undefined

  constructor(options: ReportsOptions) {
    this.#options = options
  }

  /** Does nothing for a report that equals the previous one. */
  send(report: VmReport): void {
    this.#progress.delete(report.uid)
    this.#note(report)
    this.#flush()
  }

  /** Sends the report in a while, unless another report of the VM is sent before. */
  sendProgress(uid: string, report: () => VmReport): void {
    this.#progress.set(uid, report)
    this.#progressTimer ??= setTimeout(() => {
      const reports = this.#progress
      this.#progressTimer = undefined
      this.#progress = new Map()
      for (const make of reports.values()) this.#note(make())
      this.#flush()
    }, progressAfterMs)
  }

  /** Sends everything again, because the server may have lost it. */
  repeat(): void {
    for (const uid of this.#newest.keys()) this.#due.add(uid)
    this.#pause.abort()
    this.#flush()
  }

  forget(uid: string): void {
    this.#newest.delete(uid)
    this.#due.delete(uid)
    this.#progress.delete(uid)
  }

  async stop(): Promise<void> {
    clearTimeout(this.#progressTimer)
    this.#stopping.abort()
    await this.#sending
  }

  #note(report: VmReport): void {
    const shortened = shorten(report)
    const text = JSON.stringify(shortened)
    if (this.#newest.get(report.uid)?.text === text) return
    this.#newest.set(report.uid, { report: shortened, text })
    this.#due.add(report.uid)
  }

  #flush(): void {
    if (this.#due.size === 0 || this.#stopping.signal.aborted) return
    this.#sending ??= this.#sendDue().finally(() => {
      this.#sending = undefined
      // Reports may have come since the last batch was taken.
      this.#flush()
    })
  }

  async #sendDue(): Promise<void> {
    const { send, log } = this.#options
    const { signal } = this.#stopping
    /** The largest batch that the server accepts, as far as it has refused larger ones. */
    let accepted = maxBatch
    let size = accepted
    for (let attempt = 1; this.#due.size > 0 && !signal.aborted; attempt++) {
      const batch = this.#takeDue(size)
      try {
        this.#taken(batch, await send(batch, signal))
        attempt = 0
        size = accepted
      } catch (error) {
        if (signal.aborted) return
        // A report that the server cannot read must not block the others: it is sent alone, then dropped.
        const code = error instanceof ApiError ? error.code : undefined
        const isTooLarge = code === 413
        const isRefused = isTooLarge || code === 400 || code === 422
        if (isRefused && batch.length === 1) {
          log.error('the server refused a report about a VM', { name: batch[0]?.name ?? '' }, error)
          continue
        }
        if (isTooLarge) accepted = Math.ceil(batch.length / 2)
        size = isTooLarge ? accepted : isRefused ? 1 : size
        for (const { uid } of batch) if (this.#newest.has(uid)) this.#due.add(uid)
        if (!isRefused) await this.#wait(error, attempt)
      }
    }
  }

  async #wait(error: unknown, attempt: number): Promise<void> {
    this.#pause = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, this.#pause.signal])
    await wait(retryDelay(error, attempt, retryPolicies.background), signal).catch(() => undefined)
  }

  #takeDue(count: number): VmReport[] {
    const uids = [...this.#due].slice(0, count)
    for (const uid of uids) this.#due.delete(uid)
    return uids.flatMap((uid) => this.#newest.get(uid)?.report ?? [])
  }

  #taken(batch: readonly VmReport[], unknown: readonly string[]): void {
    for (const report of batch)
      if (report.power === 'removed' && this.#newest.get(report.uid)?.report === report) this.#newest.delete(report.uid)
    for (const uid of unknown) this.#options.unknown(uid)
  }
}

/** The server would refuse longer texts. */
const shorten = (report: VmReport): VmReport => {
  const { problem, warning } = report
  return {
    ...report,
    ...(problem !== undefined && { problem: problem.slice(0, maxTextLength) }),
    ...(warning !== undefined && { warning: warning.slice(0, maxTextLength) }),
  }
}
