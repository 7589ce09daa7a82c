// Data of the charts: the last day by the minute, in ring buffers of fixed size. Latencies are histograms whose buckets
// grow by a quarter, so that busy minutes take no more memory.
import type { Charts } from '../../api/service/charts.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { PushJobRecord } from '../../store/records/push-jobs.ts'

export const minutesKept = 1_440
const minuteMs = 60_000
/** From 0.1 ms to over an hour. */
const classes = 80
const smallestSeconds = 0.0001
const growth = 1.25
const classOf = (seconds: number): number =>
  Math.min(classes - 1, Math.max(0, Math.ceil(Math.log(seconds / smallestSeconds) / Math.log(growth))))
/** The middle of a class, so that no more than an eighth is lost. */
const secondsOf = (index: number): number => smallestSeconds * growth ** (index - 0.5)

/** Operations that wait for something: their latency says nothing about the service. */
const waiting: ReadonlySet<string> = new Set([
  'deployVm', 'deleteVm', 'execVm', 'resizeVm', 'finishUpload', 'uploadImage', 'uploadIso', 'continueUpload',
  'downloadImage', 'downloadIso', 'getVmLogs', 'connectVm', 'openTerminal', 'watchAll', 'getBlob', 'putBlob',
]) // biome-ignore format: a list to read

class Times {
  readonly #counts = new Uint32Array(minutesKept * classes)

  add(slot: number, seconds: number): void {
    const at = slot * classes + classOf(seconds)
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
  }

  clear(slot: number): void {
    this.#counts.fill(0, slot * classes, (slot + 1) * classes)
  }

  /** The quantile of the latencies; null without any. */
  quantile(slot: number, part: number): number | null {
    const counts = this.#counts.subarray(slot * classes, (slot + 1) * classes)
    const total = counts.reduce((sum, count) => sum + count, 0)
    if (total === 0) return null
    let seen = 0
    for (const [index, count] of counts.entries()) {
      seen += count
      if (seen >= total * part) return rounded(secondsOf(index))
    }
    return null
  }
}

const rounded = (value: number): number => Number(value.toPrecision(4))

export interface History {
  /** An answer of the API. */
  request(operation: string | undefined, seconds: number, isStream: boolean): void
  /** Bytes that went through this server, or that a node says it has sent. */
  moved(bytes: number): void
  charts(minutes?: number): Charts
  /** Samples the present state; called at least once a minute. */
  sample(): void
  stop(): void
}

interface HistoryInput {
  readonly collections: Pick<Collections, 'vms' | 'pushJobs'>
  readonly clock: Clock
}

export function createHistory({ collections: { vms, pushJobs }, clock }: HistoryInput): History {
  const running = new Float64Array(minutesKept).fill(Number.NaN)
  const bytes = new Float64Array(minutesKept)
  const deploys = new Times()
  const answers = new Times()
  const minuteNow = (): number => Math.floor(clock.now().getTime() / minuteMs)
  const first = minuteNow()
  let latest = first

  /** The slot of this minute; slots of minutes passed since the last one are cleared. */
  const slotNow = (): number => {
    const minute = minuteNow()
    // A clock that was set back goes on writing where it was.
    for (let passed = Math.max(latest + 1, minute - minutesKept + 1); passed <= minute; passed++) {
      const slot = passed % minutesKept
      running[slot] = Number.NaN
      bytes[slot] = 0
      deploys.clear(slot)
      answers.clear(slot)
    }
    latest = Math.max(latest, minute)
    return latest % minutesKept
  }

  const isRunning = ({ observed }: VmRecord): boolean => observed.power === 'running'
  const sample = (): void => {
    const slot = slotNow()
    let count = 0
    for (const { value } of vms.list()) if (isRunning(value)) count += 1
    running[slot] = count
  }

  /** VMs that have not run yet, by uid: since when they are desired, more exactly than their record says. */
  const wanted = new Map<string, number>()
  const unsubscribeVms = vms.view.subscribe((changes) => {
    for (const change of changes) {
      const record = change.type === 'put' ? change.entry.value : undefined
      const before = change.previous?.value
      if (before && before.uid !== record?.uid) wanted.delete(before.uid)
      if (!record) continue
      const nowMs = clock.now().getTime()
      if (!before && !record.observed.hasRun) wanted.set(record.uid, nowMs)
      if (!record.observed.hasRun || before?.observed.hasRun !== false) continue
      const sinceMs = wanted.get(record.uid) ?? Date.parse(record.createdAt)
      wanted.delete(record.uid)
      deploys.add(slotNow(), Math.max(0, nowMs - sinceMs) / 1_000)
    }
  })

  const moved = (count: number): void => {
    const slot = slotNow()
    bytes[slot] = (bytes[slot] ?? 0) + count
  }
  const sentBy = (job: PushJobRecord | undefined): number =>
    job ? job.progress.bytesDone - job.progress.bytesSkipped : 0
  // Nodes send these to registries themselves, and say how far they are.
  const unsubscribeJobs = pushJobs.view.subscribe((changes) => {
    for (const change of changes)
      if (change.type === 'put') moved(Math.max(0, sentBy(change.entry.value) - sentBy(change.previous?.value)))
  })

  const series = (minutes: number): Charts['series'] => {
    slotNow()
    const from = Math.max(first, latest - minutes + 1)
    const each = (pick: (slot: number) => number | null): (number | null)[] =>
      Array.from({ length: latest - from + 1 }, (_, index) => pick((from + index) % minutesKept))
    const start = from * 60
    const count = (slot: number): number | null => (Number.isNaN(running[slot]) ? null : (running[slot] ?? null))
    return [
      { name: 'runningVms', unit: '1', start, values: each(count) },
      { name: 'deploySeconds', unit: 's', start, values: each((slot) => deploys.quantile(slot, 0.5)) },
      { name: 'bytesPerSecond', unit: 'B/s', start, values: each((slot) => Math.round((bytes[slot] ?? 0) / 60)) },
      { name: 'apiSeconds', unit: 's', start, values: each((slot) => answers.quantile(slot, 0.5)) },
      { name: 'apiSecondsP99', unit: 's', start, values: each((slot) => answers.quantile(slot, 0.99)) },
    ]
  }

  const timer = setInterval(sample, minuteMs / 4).unref()
  sample()
  return {
    request(operation, seconds, isStream) {
      if (operation !== undefined && !isStream && !waiting.has(operation)) answers.add(slotNow(), seconds)
    },
    moved,
    charts(minutes = minutesKept) {
      sample()
      return { stepSeconds: 60, series: series(minutes) }
    },
    sample,
    stop: () => {
      clearInterval(timer)
      unsubscribeVms()
      unsubscribeJobs()
    },
  }
}
