// What a cluster remembers of its load, in blocks of a quarter of an hour: one record each, to which every server adds what it
// saw. Latencies are histograms whose classes grow by a quarter, so that busy minutes take no more room.

/** How often a value of this class was seen, by the number of the class. */
export type Histogram = Readonly<Record<string, number>>

export interface HistoryPoint {
  /** When it begins, in seconds since 1970. */
  readonly at: number
  /** The most VMs that ran at once. */
  readonly running: number
  readonly bytes: number
  readonly deploys: Histogram
  readonly queues: Histogram
  readonly answers: Histogram
}

export interface HistoryRecord {
  readonly points: readonly HistoryPoint[]
  /** The block is old: one point stands for all of it. */
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

/** What two saw, or what was seen at two times, as one point at the time of the first. */
export const together = (a: HistoryPoint, b: HistoryPoint): HistoryPoint => ({
  at: a.at,
  running: Math.max(a.running, b.running),
  bytes: a.bytes + b.bytes,
  deploys: summed(a.deploys, b.deploys),
  queues: summed(a.queues, b.queues),
  answers: summed(a.answers, b.answers),
})

const asOne = (at: number, points: readonly HistoryPoint[]): HistoryPoint => points.reduce(together, noPoint(at))

/** A block with more in it. */
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
