// Charts of the last day, from what the server remembers of itself.
import { type Charts as ChartsAnswer, getCharts } from '../../../src/api/service/charts.ts'
import { useAnswer } from '../../api/calls.ts'
import { useIsDark } from '../../theme.ts'
import { ErrorNote } from '../../ui/notes.tsx'
import { Card, Loading, Page } from '../../ui/page.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Chart } from './chart.tsx'
import { formatFor, latestOf, timesOf } from './model.ts'
import { chartTexts as words } from './texts.ts'

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
      actions={<span className="muted tabular">{latest === undefined ? '' : words.latest(format(latest))}</span>}
    >
      {latest === undefined ? (
        <p className="muted">{words.empty}</p>
      ) : (
        <Chart label={title} timesSeconds={timesOf(series, stepSeconds)} values={values} format={format} />
      )}
    </Card>
  )
}
