// The data of the charts: a day by the minute, a week by the quarter of an hour. Counted in memory and added to records that all
// servers share, so that charts survive restarts and are the same on every server. A crash loses the last batch.
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
import { type Entry, ignoreLost } from '../../store/store.ts'

const minuteSeconds = 60
const daySeconds = 86_400
/** Blocks older than a day are thinned to one value each. */
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
  const found = Object.entries(counts).toSorted(([a], [b]) => Number(a) - Number(b))
  const total = found.reduce((sum, [, count]) => sum + count, 0)
  let seen = 0
  for (const [index, count] of found) {
    seen += count
    if (seen >= total * part) return Number(secondsOf(Number(index)).toPrecision(4))
  }
  return null
}

type Times = 'deploys' | 'queues' | 'answers'
type Seen = { -readonly [Name in keyof HistoryPoint]: HistoryPoint[Name] } & Record<Times, Record<string, number>>
type Series = Charts['series'][number]

/** The series of the charts. */
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

export interface History {
  request(operation: string | undefined, seconds: number, isStream: boolean): void
  /** Counts bytes that went through this server, or that a node has reported as sent. */
  moved(bytes: number): void
  charts(minutes?: number): Charts
  /** Samples the present state; called at least once a minute. */
  sample(): void
  /** Limits to one server the counting of what all servers see. */
  countsWhile(isLeading: () => boolean): void
  /** Writes the last batch. What cannot be written is tried again with the next one. */
  flush(): Promise<void>
  stop(): void
}

interface HistoryInput {
  readonly collections: Pick<Collections, 'vms' | 'pushJobs' | 'history'>
  readonly clock: Clock
}

export function createHistory({ collections: { vms, pushJobs, history }, clock }: HistoryInput): History {
  /** The points since the last batch, by the time at which they begin. */
  let added = new Map<number, Seen>()
  let latest = 0
  let isCounting = (): boolean => true
  let flushing: Promise<void> = Promise.resolve()

  /** The current minute, in seconds. It never goes back, even if the clock does. */
  const now = (): number => {
    latest = Math.max(latest, Math.floor(clock.now().getTime() / 60_000) * minuteSeconds)
    return latest
  }
  /** The point of this minute, which callers change in place. */
  const point = (): Seen => {
    const at = now()
    const found = added.get(at) ?? { ...noPoint(at), deploys: {}, queues: {}, answers: {} }
    added.set(at, found)
    return found
  }
  const moved = (bytes: number): void => {
    point().bytes += bytes
  }
  const time = (times: Times, seconds: number): void => {
    const counts = point()[times]
    const index = classOf(seconds)
    counts[index] = (counts[index] ?? 0) + 1
  }

  const isRunning = ({ observed }: VmRecord): boolean => observed.power === 'running'
  let running = 0
  for (const { value } of vms.each()) if (isRunning(value)) running += 1
  const sample = (): void => {
    const seen = point()
    seen.running = Math.max(seen.running, running)
  }

  const unsubscribeVms = vms.view.subscribe((changes) => {
    for (const change of changes) {
      const record = change.type === 'put' ? change.entry.value : undefined
      const before = change.previous?.value
      running += Number(record !== undefined && isRunning(record)) - Number(before !== undefined && isRunning(before))
      if (!record || !isCounting()) continue
      const requestedMs = record.times?.requestedMs ?? Date.parse(record.createdAt)
      const seconds = Math.max(0, clock.now().getTime() - requestedMs) / 1_000
      const isFirstRun = record.observed.hasRun && before?.observed.hasRun === false
      if (record.place && !before?.place && (isFirstRun || !record.observed.hasRun)) time('queues', seconds)
      if (isFirstRun) time('deploys', seconds)
    }
  })

  const sentBy = (job: PushJobRecord | undefined): number =>
    job ? job.progress.bytesDone - job.progress.bytesSkipped : 0
  // Nodes push to registries directly and report their progress.
  const unsubscribeJobs = pushJobs.view.subscribe((changes) => {
    for (const change of changes)
      if (change.type === 'put' && isCounting())
        moved(Math.max(0, sentBy(change.entry.value) - sentBy(change.previous?.value)))
  })

  const startOf = ({ key }: Pick<Entry<unknown>, 'key'>): number => Number(key.slice(history.prefix.length))
  const blockOf = (at: number): number => at - (at % blockSeconds)

  const write = async (): Promise<void> => {
    const batch = Map.groupBy(added.values(), ({ at }) => blockOf(at))
    added = new Map()
    try {
      for (const [start, points] of batch) {
        await history.change(history.key('', nameOf(start)), (before) => withPoints(before, points))
        batch.delete(start)
      }
    } finally {
      for (const left of batch.values())
        for (const each of left) added.set(each.at, together(added.get(each.at) ?? noPoint(each.at), each) as Seen)
    }
    for (const entry of history.list()) {
      const age = now() - startOf(entry)
      if (age >= keptSeconds + blockSeconds) await history.delete(entry).catch(ignoreLost)
      else if (age >= daySeconds + blockSeconds && !entry.value.isThin)
        await history.update(entry, thinned(startOf(entry), entry.value)).catch(ignoreLost)
    }
  }

  const series = (minutes: number, stepSeconds: number): Charts['series'] => {
    const stepOf = (at: number): number => at - (at % stepSeconds)
    const last = stepOf(now())
    const oldest = stepOf(now() - (minutes - 1) * minuteSeconds)
    const points = new Map<number, HistoryPoint>()
    for (const each of [...history.list().flatMap(({ value }) => value.points), ...added.values()]) {
      const at = stepOf(each.at)
      if (at >= oldest && at <= last) points.set(at, together(points.get(at) ?? noPoint(at), each))
    }
    const start = Math.min(last, ...points.keys())
    const steps = Array.from({ length: (last - start) / stepSeconds + 1 }, (_, index) => start + index * stepSeconds)
    const found = steps.map((at) => points.get(at))
    return charted.map(({ name, unit, value }) => ({
      name,
      unit,
      start,
      values: found.map((point) => (point ? value(point, stepSeconds) : null)),
    }))
  }

  const timer = setInterval(sample, 15_000).unref()
  sample()
  return {
    request(operation, seconds, isStream) {
      if (operation !== undefined && !isStream && !waiting.has(operation)) time('answers', seconds)
    },
    moved,
    charts(minutes = minutesByMinute) {
      sample()
      const stepSeconds = minutes > minutesByMinute ? blockSeconds : minuteSeconds
      return { stepSeconds, series: series(minutes, stepSeconds) }
    },
    sample,
    countsWhile: (isLeading) => {
      isCounting = isLeading
    },
    flush() {
      const next = flushing.then(write)
      flushing = next.catch(() => undefined)
      return next
    },
    stop: () => {
      clearInterval(timer)
      unsubscribeVms()
      unsubscribeJobs()
    },
  }
}

/** Padded, so that names are in the order of time. */
const nameOf = (start: number): string => String(start).padStart(11, '0')
