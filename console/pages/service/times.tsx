// Queue and deploy times of the last hours: a bar per 15 minutes, p95 behind p50.
import { Link } from 'wouter'
import { type Charts, getCharts } from '../../../src/api/service/charts.ts'
import { useAnswer } from '../../api/calls.ts'
import { Card, ErrorNote } from '../../ui/page.tsx'
import { count } from '../../ui/sizes.ts'
import { formats, latestOf } from '../charts/model.ts'

/** Requests for more than a day return 15-minute values; the page shows the last ones. */
const minutes = 1_455
const steps = 24
const everyMs = 60_000

const rows = [
  ['Waiting for a node', 'queueSeconds', 'queueSecondsP95'],
  ['Request to running', 'deploySeconds', 'deploySecondsP95'],
] as const

type Values = readonly (number | null)[]
const lastOf = ({ series }: Charts, name: string): Values =>
  series.find((each) => each.name === name)?.values.slice(-steps) ?? []

export function Times() {
  const { data, error } = useAnswer(getCharts, { query: { minutes } }, { everyMs })
  const shown = data && rows.map(([label, p50, p95]) => ({ label, p50: lastOf(data, p50), p95: lastOf(data, p95) }))
  const hours = data ? (steps * data.stepSeconds) / 3_600 : 0
  return (
    <Card title="Queue and deploy time">
      <ErrorNote error={error} />
      {!shown ? (
        <p className="muted">Loading…</p>
      ) : shown.every(({ p95 }) => latestOf(p95) === undefined) ? (
        <p className="muted">No deployments in this time</p>
      ) : (
        shown.map(({ label, p50, p95 }) => (
          <div key={label} className="stack-tight">
            <div className="spread small">
              <span className="muted">{label}</span>
              <span className="tabular">{textOf(p50, p95)}</span>
            </div>
            <Bars label={label} p50={p50} p95={p95} />
          </div>
        ))
      )}
      <p className="muted small">
        <Link href="/charts">{`Last ${count(hours, 'hour', 'hours')}, every 15 minutes`}</Link>
      </p>
    </Card>
  )
}

function textOf(p50: Values, p95: Values): string {
  const [middle, high] = [latestOf(p50), latestOf(p95)]
  const format = formats.s
  return middle === undefined || high === undefined ? 'None' : `p50 ${format(middle)}, p95 ${format(high)}`
}

const highPx = 28

function Bars({ label, p50, p95 }: { readonly label: string; readonly p50: Values; readonly p95: Values }) {
  const max = Math.max(...p95.map((value) => value ?? 0), 1e-9)
  const bars = (values: Values, kind: string) =>
    values.map((value, index) => {
      if (value === null) return null
      const height = Math.max(1, (highPx * value) / max)
      // biome-ignore lint/suspicious/noArrayIndexKey: a bar is identified by its position
      return <rect key={index} className={kind} x={index * 4} width={3} y={highPx - height} height={height} />
    })
  return (
    <svg
      className="bars"
      viewBox={`0 0 ${steps * 4 - 1} ${highPx}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${textOf(p50, p95)}`}
    >
      {bars(p95, 'p95')}
      {bars(p50, 'p50')}
    </svg>
  )
}
