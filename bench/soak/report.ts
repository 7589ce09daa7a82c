// What a soak has shown, as a table with its limits and as a chart.
import type { Call } from './load.ts'
import { percentile, type Sample, slopeOf } from './samples.ts'

export interface Soaked {
  readonly samples: readonly Sample[]
  readonly calls: readonly Call[]
  readonly failures: readonly string[]
  readonly startMs: number
  readonly minuteMs: number
  /** At rest, before the load and after it. */
  readonly rest: readonly [before: Sample, after: Sample]
  readonly restarts: number
  readonly minutes: number
}

interface Line {
  readonly what: string
  readonly value: number
  readonly unit: string
  /** Undefined: it is told, and nothing is promised. */
  readonly atMost?: number
}

/** Caches fill, and code is compiled. */
const warmUp = (minutes: number): number => Math.min(20, minutes / 3)

export function linesOf({ samples, calls, failures, startMs, minuteMs, rest, restarts, minutes }: Soaked): Line[] {
  const [before, after] = rest
  const settled = samples.filter(({ minute }) => minute >= warmUp(minutes))
  const points = settled.map(({ minute, heapMegabytes }) => [minute, heapMegabytes] as const)
  const deploys = calls.filter(({ activity }) => activity === 'deploy')
  const p99Of = (from: number, to: number): number =>
    percentile(
      deploys
        .filter(({ atMs }) => atMs >= startMs + from * minuteMs && atMs < startMs + to * minuteMs)
        .map((call) => call.tookMs),
      0.99,
    )
  const quarter = (minutes - warmUp(minutes)) / 4
  const [first, last] = [p99Of(warmUp(minutes), warmUp(minutes) + quarter), p99Of(minutes - quarter, minutes)]
  return [
    { what: 'Heap of the server that stays, growth in 10 minutes', value: 10 * slopeOf(points), unit: 'MB', atMost: 1 },
    { what: 'Its resident memory at the end', value: samples.at(-1)?.residentMegabytes ?? Number.NaN, unit: 'MB' },
    { what: 'Open files left over', value: after.files - before.files, unit: '', atMost: 5 },
    { what: 'Timers left over', value: after.timers - before.timers, unit: '', atMost: 5 },
    { what: 'Watches left over', value: after.watches - before.watches, unit: '', atMost: 0 },
    { what: 'Deploy and delete, p99', value: last, unit: 'ms' },
    { what: 'The same, last quarter to first', value: last / first, unit: '×', atMost: 1.5 },
    { what: 'Calls that failed', value: failures.length, unit: '', atMost: 0 },
    { what: 'Calls', value: calls.length, unit: '' },
    { what: 'Restarts of the other server', value: restarts, unit: '' },
  ]
}

export const isMissed = ({ value, atMost = Infinity }: Line): boolean => !(value <= atMost)

const figure = (value: number): string => String(Number(value.toPrecision(3)))

export const tableOf = (lines: readonly Line[]): string =>
  [
    '| What | Figure | Limit |',
    '|---|---|---|',
    ...lines.map((line) => {
      const limit = line.atMost === undefined ? '–' : `≤ ${line.atMost}${isMissed(line) ? ' MISSED' : ''}`
      return `| ${line.what} | ${figure(line.value)} ${line.unit} | ${limit} |`.replaceAll('  ', ' ')
    }),
  ].join('\n')

const size = { width: 720, height: 220, left: 50, bottom: 30, top: 12 }

/** The heap of the server that stays, and the p99 of deployments, by minute. */
export function chartOf({ samples, calls, startMs, minuteMs }: Soaked): string {
  const minutes = Math.max(1, ...samples.map(({ minute }) => minute))
  const deploys = calls.filter(({ activity }) => activity === 'deploy')
  const p99 = samples.slice(1).map(({ minute }) => {
    const from = startMs + (minute - 1) * minuteMs
    const took = deploys.filter(({ atMs }) => atMs >= from && atMs < from + minuteMs).map(({ tookMs }) => tookMs)
    return [minute, percentile(took, 0.99)] as const
  })
  const heap = samples.map(({ minute, heapMegabytes }) => [minute, heapMegabytes] as const)
  const series = [
    { name: 'heap, MB', color: '#2563eb', points: heap },
    {
      name: 'p99 of deploy and delete, ms',
      color: '#d97706',
      points: p99.filter(([, value]) => Number.isFinite(value)),
    },
  ]
  const top = Math.max(1, ...series.flatMap(({ points }) => points.map(([, value]) => value))) * 1.1
  const x = (minute: number): number => size.left + (minute / minutes) * (size.width - size.left - 10)
  const y = (value: number): number =>
    size.height - size.bottom - (value / top) * (size.height - size.bottom - size.top)
  const text = (at: readonly [number, number], words: string, more = ''): string =>
    `<text x="${at[0].toFixed(0)}" y="${at[1].toFixed(0)}" ${more}>${words}</text>`
  const grid = [0, 0.5, 1].map((share) => {
    const at = y((top * share) / 1.1)
    return `<line x1="${size.left}" x2="${size.width - 10}" y1="${at.toFixed(0)}" y2="${at.toFixed(0)}" stroke="#ddd"/>${text([size.left - 6, at + 4], figure(Math.round((top * share) / 1.1)), 'text-anchor="end"')}`
  })
  const lines = series.map(({ color, points }) => {
    const path = points.map(([minute, value]) => `${x(minute).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    return `<polyline fill="none" stroke="${color}" stroke-width="2" points="${path}"/>`
  })
  const legend = series.map(({ name, color }, index) =>
    text([size.left + 8 + index * 110, size.top + 8], name, `fill="${color}"`),
  )
  const axis = [0, minutes / 2, minutes].map((minute) =>
    text([x(minute), size.height - 10], `${Math.round(minute)} min`, 'text-anchor="middle"'),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${[...grid, ...lines, ...legend, ...axis].join('\n')}
</svg>
`
}
