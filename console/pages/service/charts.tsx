// Charts of the whole cluster.
import { getCharts } from '../../../src/api/service/charts.ts'
import { useAnswer } from '../../api/calls.ts'
import { ErrorNote, Loading, Page } from '../../ui/page.tsx'
import { ShowAsButton } from '../../ui/show-as.tsx'
import { allRanges } from '../charts/model.ts'
import { RangePicker, useRange } from '../charts/range.tsx'
import { AllSeries } from '../charts/series.tsx'

/** A new value shows within this time. The server adds one every minute. */
const everyMs = 20_000

export function ChartsPage() {
  const [minutes, pick] = useRange(allRanges)
  const input = { query: { minutes } }
  const { data, error, isPending } = useAnswer(getCharts, input, { everyMs })
  return (
    <Page title="Charts" actions={<ShowAsButton operation={getCharts} input={input} />}>
      <RangePicker ranges={allRanges} minutes={minutes} onPick={pick} />
      <p className="muted">
        Metrics of the whole cluster: one value per minute for up to a day, one per 15 minutes for a week.
      </p>
      <ErrorNote error={error} />
      {isPending ? <Loading /> : data && <AllSeries answer={data} />}
    </Page>
  )
}
