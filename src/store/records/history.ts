// The load of a cluster over time, in one record per quarter of an hour, to which every server adds. Latencies are
// histograms whose classes grow by a quarter, so that busy minutes take no more space.

/** Counts by the number of the class. */
export type Histogram = Readonly<Record<string, number>>

export interface HistoryPoint {
  /** The start of the point, in seconds since 1970. */
  readonly at: number
  /** The largest number of VMs that ran together. */
  readonly running: number
  readonly bytes: number
  readonly deploys: Histogram
  readonly queues: Histogram
  readonly answers: Histogram
}

export interface HistoryRecord {
  readonly points: readonly HistoryPoint[]
  /** Set on old blocks, which are reduced to one point. */
  readonly isThin?: true
}

export const blockSeconds = 900

export const noPoint = (at: number): HistoryPoint => ({
  at,
  running: 0,
  bytes: 0,
  deploys: {},
  queues: {},
  answers: {},
})

const summed = (a: Histogram, b: Histogram): Histogram => {
  const sum: Record<string, number> = { ...a }
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** Merges two points into one at the time of the first. */
export const together = (a: HistoryPoint, b: HistoryPoint): HistoryPoint => ({
  at: a.at,
  running: Math.max(a.running, b.running),
  bytes: a.bytes + b.bytes,
  deploys: summed(a.deploys, b.deploys),
  queues: summed(a.queues, b.queues),
  answers: summed(a.answers, b.answers),
})

const asOne = (at: number, points: readonly HistoryPoint[]): HistoryPoint => points.reduce(together, noPoint(at))

export function withPoints(block: HistoryRecord | undefined, added: readonly HistoryPoint[]): HistoryRecord {
  const [first] = block?.points ?? []
  if (block?.isThin && first) return { points: [asOne(first.at, [...block.points, ...added])], isThin: true }
  const points = new Map(block?.points.map((point) => [point.at, point]))
  for (const point of added) points.set(point.at, together(points.get(point.at) ?? noPoint(point.at), point))
  return { points: [...points.values()].toSorted((a, b) => a.at - b.at) }
}

export const thinned = (start: number, { points }: HistoryRecord): HistoryRecord => ({
  points: [asOne(start, points)],
  isThin: true,
})
