// Reports of VMs to the server: the newest report of each, in batches, at once, again until it was taken.
import { ApiError } from '../../api/errors.ts'
import type { VmReport } from '../../api/nodes/agent.ts'
import type { Log } from '../../platform/log.ts'
import { backOff, type RetryPolicy, wait } from '../../rules/retry.ts'

export interface Reports {
  /** A report equal to the last one is not sent again. */
  send(report: VmReport): void
  /** Only how far something is: made and sent in a while, and left out where the outcome comes sooner. */
  sendProgress(uid: string, report: () => VmReport): void
  /** Everything again: the server may have lost it. */
  repeat(): void
  /** Drops what is known of a VM that the server does not ask about. */
  forget(uid: string): void
  stop(): Promise<void>
}

interface ReportsOptions {
  /** Sends and returns the uids that the server does not know. */
  send(vms: readonly VmReport[], signal: AbortSignal): Promise<readonly string[]>
  unknown(uid: string): void
  readonly log: Log
}

const batchSize = 500
const longestText = 8_000
/** What is over sooner is not worth a request and a write; a burst of VMs would have several of each. */
const progressAfterMs = 1_000
const retry: RetryPolicy = { attempts: Infinity, firstDelayMs: 200, maxDelayMs: 15_000, maxRetryAfterMs: 30_000 }

export function createReports({ send, unknown, log }: ReportsOptions): Reports {
  /** With the text that the next one is compared with. */
  const newest = new Map<string, { readonly report: VmReport; readonly text: string }>()
  const due = new Set<string>()
  /** Progress that waits. */
  let later = new Map<string, () => VmReport>()
  const stopping = new AbortController()
  let pausing = new AbortController()
  let sending: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  /** Whether it is news. */
  const note = (report: VmReport): boolean => {
    const cutReport = cut(report)
    const text = JSON.stringify(cutReport)
    if (newest.get(report.uid)?.text === text) return false
    newest.set(report.uid, { report: cutReport, text })
    return true
  }

  const take = (count: number): VmReport[] => {
    const batch: VmReport[] = []
    for (const uid of due) {
      if (batch.length === count) break
      due.delete(uid)
      const known = newest.get(uid)
      if (known) batch.push(known.report)
    }
    return batch
  }

  const taken = (batch: readonly VmReport[], strangers: readonly string[]): void => {
    for (const report of batch)
      if (report.power === 'removed' && newest.get(report.uid)?.report === report) newest.delete(report.uid)
    for (const uid of strangers) unknown(uid)
  }

  const flushAll = async (): Promise<void> => {
    /** What the server takes at once, as far as it has said so. */
    let most = batchSize
    let size = most
    for (let attempt = 1; due.size > 0 && !stopping.signal.aborted; attempt++) {
      const batch = take(size)
      try {
        taken(batch, await send(batch, stopping.signal))
        attempt = 0
        size = most
      } catch (error) {
        if (stopping.signal.aborted) return
        // One that the server cannot read must not hold up the others: alone, it is dropped.
        const code = error instanceof ApiError ? error.code : undefined
        const isTooLarge = code === 413
        const isRefused = isTooLarge || code === 400 || code === 422
        if (isRefused && batch.length === 1) {
          log.error('the server refused a report about a VM', { name: batch[0]?.name ?? '' }, error)
          continue
        }
        if (isTooLarge) most = Math.ceil(batch.length / 2)
        size = isTooLarge ? most : isRefused ? 1 : size
        for (const { uid } of batch) if (newest.has(uid)) due.add(uid)
        pausing = new AbortController()
        const signal = AbortSignal.any([stopping.signal, pausing.signal])
        if (!isRefused) await wait(backOff(Math.min(attempt, 10), retry, Math.random), signal).catch(() => undefined)
      }
    }
  }

  const flush = (): void => {
    sending ??= flushAll().finally(() => {
      sending = undefined
      // What came between the last look and now.
      if (due.size > 0 && !stopping.signal.aborted) flush()
    })
  }

  const flushLater = (): void => {
    timer = undefined
    const reports = later
    later = new Map()
    for (const make of reports.values()) {
      const report = make()
      if (note(report)) due.add(report.uid)
    }
    if (due.size > 0) flush()
  }

  return {
    send(report) {
      later.delete(report.uid)
      if (!note(report)) return
      due.add(report.uid)
      flush()
    },
    sendProgress(uid, report) {
      later.set(uid, report)
      timer ??= setTimeout(flushLater, progressAfterMs)
    },
    repeat() {
      for (const uid of newest.keys()) due.add(uid)
      pausing.abort()
      if (due.size > 0) flush()
    },
    forget(uid) {
      newest.delete(uid)
      due.delete(uid)
      later.delete(uid)
    },
    async stop() {
      clearTimeout(timer)
      stopping.abort()
      await sending
    },
  }
}

/** Longer texts would be refused. */
const cut = (report: VmReport): VmReport => {
  const { problem, warning } = report
  if (problem === undefined && warning === undefined) return report
  return {
    ...report,
    ...(problem !== undefined && { problem: problem.slice(0, longestText) }),
    ...(warning !== undefined && { warning: warning.slice(0, longestText) }),
  }
}
