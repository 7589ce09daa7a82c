// A card with a chart for each series, and a summary for screen readers.
import { useIsDark } from '../../theme.ts'
import { Card } from '../../ui/page.tsx'
import { formats, latestOf, rangeOf, timesOf, type Unit } from './model.ts'
import { Plot } from './plot.tsx'

const titles = {
  runningVms: 'Running VMs',
  deploySeconds: 'Time to deploy (median)',
  deploySecondsP95: 'Time to deploy (p95)',
  queueSeconds: 'Time in the queue (median)',
  queueSecondsP95: 'Time in the queue (p95)',
  bytesPerSecond: 'Data transferred',
  apiSeconds: 'API latency (median)',
  apiSecondsP99: 'API latency (p99)',
  cpu: 'CPU',
  memory: 'Memory',
  diskRead: 'Disk reads',
  diskWrite: 'Disk writes',
  networkIn: 'Network in',
  networkOut: 'Network out',
  disk: 'Disk used',
  cacheHits: 'Image cache hits',
} as Readonly<Record<string, string>>

interface Series {
  readonly name: string
  readonly unit: Unit
  readonly start: number
  readonly values: readonly (number | null)[]
}

export interface SeriesAnswer {
  readonly stepSeconds: number
  readonly series: readonly Series[]
}

export function AllSeries({ answer }: { readonly answer: SeriesAnswer }) {
  const isDark = useIsDark()
  return (
    <div className="grid-3">
      {answer.series.map((series) => (
        <One key={`${series.name} ${isDark}`} series={series} stepSeconds={answer.stepSeconds} />
      ))}
    </div>
  )
}

function One({ series, stepSeconds }: { readonly series: Series; readonly stepSeconds: number }) {
  const { name, unit, values } = series
  const format = formats[unit]
  const latest = latestOf(values)
  const title = titles[name] ?? name
  const range = rangeOf(values)
  return (
    <Card
      title={title}
      actions={<span className="muted tabular nowrap">{latest === undefined ? '' : `now ${format(latest)}`}</span>}
    >
      {latest === undefined || !range ? (
        <p className="muted">No data yet</p>
      ) : (
        <Plot
          label={`${title}: ${format(latest)} now, lowest ${format(range.low)}, highest ${format(range.high)}`}
          timesSeconds={timesOf(series, stepSeconds)}
          values={values}
          format={format}
          unit={unit}
        />
      )}
    </Card>
  )
}
