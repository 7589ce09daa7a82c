// Charts of the last day, from what the server remembers of itself. Loaded when they are opened.
import { type Charts as ChartsAnswer, getCharts } from '../../../src/api/service/charts.ts'
import { useAnswer } from '../../api/calls.ts'
import { useIsDark } from '../../theme.ts'
import { Card, ErrorNote, Loading, Page } from '../../ui/page.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { formatFor, latestOf, timesOf } from './model.ts'
import { chartTexts as words } from './texts.ts'
import 'uplot/dist/uPlot.min.css'
import '../../styles/chart.css'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'

/** Measured, not recorded: there is a new value every minute. */
const everyMs = 20_000

export function Charts() {
  const isDark = useIsDark()
  const { data, error, isPending } = useAnswer(getCharts, {}, everyMs)
  return (
    <Page title={words.title} actions={<TeachPage operation={getCharts} input={{}} />}>
      <p className="muted">{words.text}</p>
      <ErrorNote error={error} />
      {isPending ? (
        <Loading />
      ) : (
        <div className="grid-2">
          {data?.series.map((series) => (
            <Series key={`${series.name} ${isDark}`} series={series} stepSeconds={data.stepSeconds} />
          ))}
        </div>
      )}
    </Page>
  )
}

interface Props {
  readonly series: ChartsAnswer['series'][number]
  readonly stepSeconds: number
}

function Series({ series, stepSeconds }: Props) {
  const { name, unit, values } = series
  const format = formatFor(unit)
  const latest = latestOf(values)
  const title = words.names[name] ?? name
  return (
    <Card
      title={title}
      actions={<span className="muted tabular nowrap">{latest === undefined ? '' : words.latest(format(latest))}</span>}
    >
      {latest === undefined ? (
        <p className="muted">{words.empty}</p>
      ) : (
        <Chart label={title} timesSeconds={timesOf(series, stepSeconds)} values={values} format={format} />
      )}
    </Card>
  )
}

interface ChartProps {
  readonly label: string
  readonly timesSeconds: readonly number[]
  readonly values: readonly (number | null)[]
  readonly format: (value: number) => string
}

const heightPx = 190

export function Chart({ label, timesSeconds, values, format }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const shape = useRef(format)
  shape.current = format
  // biome-ignore lint/correctness/useExhaustiveDependencies: the plot is made once, its data are set below
  useEffect(() => {
    const host = place.current
    if (!host) return
    const style = getComputedStyle(host)
    // A canvas does not know light-dark(): it gets the colours that the page has now.
    const colour = (name: string): string => {
      const probe = document.createElement('span')
      probe.style.color = `var(${name})`
      host.append(probe)
      const found = getComputedStyle(probe).color
      probe.remove()
      return found
    }
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
    const font = `12px ${style.fontFamily}`
    const made = new UPlot(
      {
        width: host.clientWidth,
        height: heightPx,
        legend: { show: false },
        cursor: { y: false },
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1e-9)] } },
        axes: [
          { ...axis, font },
          { ...axis, font, size: 64, values: (_plot, ticks) => ticks.map((tick) => shape.current(tick)) },
        ],
        series: [{}, { label, stroke: colour('--fill-used'), width: 1.5, points: { size: 4 }, spanGaps: false }],
      },
      [[...timesSeconds], [...values]],
      host,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: host.clientWidth, height: heightPx }))
    resized.observe(host)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [])
  useEffect(() => plot.current?.setData([[...timesSeconds], [...values]]), [timesSeconds, values])
  return <div ref={place} className="chart" role="img" aria-label={label} />
}
