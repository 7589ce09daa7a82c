// The data of the charts: a day by the minute, a week by the quarter of an hour. Counted in memory and added to records that
// all servers share, so that charts survive restarts and are the same on every server. A crash loses the last batch.
import type { Charts } from '../../api/service/charts.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { VmRecord } from '../../store/records/fleet-records.ts'
import {
  blockSeconds,
  type Histogram,
  type HistoryPoint,
  noPoint,
  thinned,
  together,
  withPoints,
} from '../../store/records/history.ts'
import type { PushJobRecord } from '../../store/records/push-jobs.ts'
import { type Change, ignoreLost } from '../../store/store.ts'

const sampleMs = 15_000
const minuteSeconds = 60
const daySeconds = 86_400
/** Blocks are deleted after this time. Those older than a day are thinned to one value each. */
const keptSeconds = 7 * daySeconds
export const minutesKept = keptSeconds / minuteSeconds
const minutesByMinute = daySeconds / minuteSeconds
/** The buckets of a histogram, from 0.1 ms to over an hour. */
const classes = 80
const smallestSeconds = 0.0001
const growth = 1.25
const classOf = (seconds: number): number =>
  Math.min(classes - 1, Math.max(0, Math.ceil(Math.log(seconds / smallestSeconds) / Math.log(growth))))
/** The middle of a bucket, which is at most an eighth off. */
const secondsOf = (index: number): number => smallestSeconds * growth ** (index - 0.5)

/** Operations that wait for something, so their latency says nothing about the service. */
const waiting: ReadonlySet<string> = new Set([
  'deployVm', 'deleteVm', 'execVm', 'resizeVm', 'finishUpload', 'uploadImage', 'uploadIso', 'continueUpload',
  'downloadImage', 'downloadIso', 'getVmLogs', 'connectVm', 'openTerminal', 'watchAll', 'getBlob', 'putBlob',
]) // biome-ignore format: a list to read

function quantile(counts: Histogram, part: number): number | null {
  const classCounts = Object.entries(counts).toSorted(([a], [b]) => Number(a) - Number(b))
  const total = classCounts.reduce((sum, [, count]) => sum + count, 0)
  let below = 0
  for (const [index, count] of classCounts) {
    below += count
    if (below >= total * part) return Number(secondsOf(Number(index)).toPrecision(4))
  }
  return null
}

type Latency = 'deploys' | 'queues' | 'answers'
type CountedPoint = { -readonly [Name in keyof HistoryPoint]: HistoryPoint[Name] } & Record<
  Latency,
  Record<string, number>
>
type Series = Charts['series'][number]

const charted: readonly (Pick<Series, 'name' | 'unit'> & {
  value(point: HistoryPoint, stepSeconds: number): number | null
})[] = [
  { name: 'runningVms', unit: '1', value: ({ running }) => running },
  { name: 'deploySeconds', unit: 's', value: ({ deploys }) => quantile(deploys, 0.5) },
  { name: 'deploySecondsP95', unit: 's', value: ({ deploys }) => quantile(deploys, 0.95) },
  { name: 'queueSeconds', unit: 's', value: ({ queues }) => quantile(queues, 0.5) },
  { name: 'queueSecondsP95', unit: 's', value: ({ queues }) => quantile(queues, 0.95) },
  { name: 'bytesPerSecond', unit: 'B/s', value: ({ bytes }, stepSeconds) => Math.round(bytes / stepSeconds) },
  { name: 'apiSeconds', unit: 's', value: ({ answers }) => quantile(answers, 0.5) },
  { name: 'apiSecondsP99', unit: 's', value: ({ answers }) => quantile(answers, 0.99) },
]

interface HistoryInput {
  readonly collections: Pick<Collections, 'vms' | 'pushJobs' | 'history'>
  readonly clock: Clock
}

export class History {
  readonly #collections: HistoryInput['collections']
  readonly #clock: Clock
  /** The points since the last batch, by the time at which they begin. */
  #added = new Map<number, CountedPoint>()
  #latest = 0
  #running = 0
  #isCounting = (): boolean => true
  #flushing: Promise<void> = Promise.resolve()
  readonly #stop: readonly (() => void)[]

  constructor({ collections, clock }: HistoryInput) {
    this.#collections = collections
    this.#clock = clock
    for (const { value } of collections.vms.each()) if (isRunning(value)) this.#running += 1
    const timer = setInterval(() => this.sample(), sampleMs).unref()
    this.#stop = [
      () => clearInterval(timer),
      collections.vms.view.subscribe((changes) => {
        for (const change of changes) this.#countVm(change)
      }),
      collections.pushJobs.view.subscribe((changes) => {
        for (const change of changes) this.#countPush(change)
      }),
    ]
    this.sample()
  }

  request(operation: string | undefined, seconds: number, isStream: boolean): void {
    if (operation !== undefined && !isStream && !waiting.has(operation)) this.#time('answers', seconds)
  }

  /** Counts bytes that went through this server, or that a node has reported as sent. */
  moved(bytes: number): void {
    this.#point().bytes += bytes
  }

  /** Samples the present state; called at least once a minute. */
  sample(): void {
    const point = this.#point()
    point.running = Math.max(point.running, this.#running)
  }

  charts(minutes = minutesByMinute): Charts {
    this.sample()
    const stepSeconds = minutes > minutesByMinute ? blockSeconds : minuteSeconds
    return { stepSeconds, series: this.#series(minutes, stepSeconds) }
  }

  /** Limits to one server the counting of what all servers see. */
  countsWhile(isLeading: () => boolean): void {
    this.#isCounting = isLeading
  }

  /** Writes the last batch. What cannot be written is tried again with the next one. */
  flush(): Promise<void> {
    const next = this.#flushing.then(() => this.#write())
    this.#flushing = next.catch(() => undefined)
    return next
  }

  stop(): void {
    for (const stop of this.#stop) stop()
  }

  /** The current minute, in seconds. It never goes back, even if the clock does. */
  #now(): number {
    this.#latest = Math.max(this.#latest, Math.floor(this.#clock.now().getTime() / 60_000) * minuteSeconds)
    return this.#latest
  }

  /** The point of this minute, which callers change in place. */
  #point(): CountedPoint {
    const at = this.#now()
    const point = this.#added.get(at) ?? { ...noPoint(at), deploys: {}, queues: {}, answers: {} }
    this.#added.set(at, point)
    return point
  }

  #time(latency: Latency, seconds: number): void {
    const counts = this.#point()[latency]
    const index = classOf(seconds)
    counts[index] = (counts[index] ?? 0) + 1
  }

  #countVm(change: Change<VmRecord>): void {
    const record = change.type === 'put' ? change.entry.value : undefined
    const before = change.previous?.value
    this.#running += Number(isRunning(record)) - Number(isRunning(before))
    if (!record || !this.#isCounting()) return
    const requestedMs = record.times?.requestedMs ?? Date.parse(record.createdAt)
    const seconds = Math.max(0, this.#clock.now().getTime() - requestedMs) / 1_000
    const isFirstRun = record.observed.hasRun && before?.observed.hasRun === false
    if (record.place && !before?.place && (isFirstRun || !record.observed.hasRun)) this.#time('queues', seconds)
    if (isFirstRun) this.#time('deploys', seconds)
  }

  /** Nodes push to registries directly and report their progress. */
  #countPush(change: Change<PushJobRecord>): void {
    if (change.type !== 'put' || !this.#isCounting()) return
    this.moved(Math.max(0, sentBy(change.entry.value) - sentBy(change.previous?.value)))
  }

  async #write(): Promise<void> {
    const { history } = this.#collections
    const batch = Map.groupBy(this.#added.values(), ({ at }) => at - (at % blockSeconds))
    this.#added = new Map()
    try {
      for (const [start, points] of batch) {
        await history.change(history.key('', nameOf(start)), (before) => withPoints(before, points))
        batch.delete(start)
      }
    } finally {
      for (const each of [...batch.values()].flat())
        this.#added.set(each.at, together(this.#added.get(each.at) ?? noPoint(each.at), each) as CountedPoint)
    }
    await this.#thinOut()
  }

  async #thinOut(): Promise<void> {
    const { history } = this.#collections
    for (const entry of history.list()) {
      const start = Number(entry.key.slice(history.prefix.length))
      const age = this.#now() - start
      if (age >= keptSeconds + blockSeconds) await history.delete(entry).catch(ignoreLost)
      else if (age >= daySeconds + blockSeconds && !entry.value.isThin)
        await history.update(entry, thinned(start, entry.value)).catch(ignoreLost)
    }
  }

  #series(minutes: number, stepSeconds: number): Charts['series'] {
    const stepOf = (at: number): number => at - (at % stepSeconds)
    const last = stepOf(this.#now())
    const oldest = stepOf(this.#now() - (minutes - 1) * minuteSeconds)
    const points = new Map<number, HistoryPoint>()
    const written = this.#collections.history.list().flatMap(({ value }) => value.points)
    for (const each of [...written, ...this.#added.values()]) {
      const at = stepOf(each.at)
      if (at >= oldest && at <= last) points.set(at, together(points.get(at) ?? noPoint(at), each))
    }
    const start = Math.min(last, ...points.keys())
    const steps = Array.from({ length: (last - start) / stepSeconds + 1 }, (_, index) => start + index * stepSeconds)
    return charted.map(({ name, unit, value }) => ({
      name,
      unit,
      start,
      values: steps.map((at) => {
        const point = points.get(at)
        return point ? value(point, stepSeconds) : null
      }),
    }))
  }
}

const isRunning = (vm: VmRecord | undefined): boolean => vm?.observed.power === 'running'

const sentBy = (job: PushJobRecord | undefined): number =>
  job ? job.progress.bytesDone - job.progress.bytesSkipped : 0

/** Padded, so that names are in the order of time. */
const nameOf = (start: number): string => String(start).padStart(11, '0')
