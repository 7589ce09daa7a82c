// Charts of what a node measures of a VM or of itself. In its own bundle with the chart library.
import { useEffect, useState } from 'react'
import type { Operation } from '../../../src/api/operation.ts'
import { useAnswer } from '../../api/calls.ts'
import { ErrorNote, Loading } from '../../ui/page.tsx'
import { dayRanges } from './model.ts'
import { RangePicker, useRange } from './range.tsx'
import { AllSeries, type SeriesAnswer } from './series.tsx'

interface Props {
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
}

/** Nodes measure every 10 s. After an error, as of a node that has just gone offline, requests are less frequent. */
const [usualMs, failedMs] = [10_000, 60_000]

export function MeasuredCharts({ operation, params }: Props) {
  const [minutes, pick] = useRange(dayRanges, '1h')
  const [everyMs, setEveryMs] = useState(usualMs)
  const { data, error, isPending } = useAnswer(operation, { params, query: { minutes } }, { everyMs })
  useEffect(() => setEveryMs(error === undefined ? usualMs : failedMs), [error])
  const answer = data as SeriesAnswer | undefined
  return (
    <section className="stack" aria-label="Resource usage">
      <div className="spread">
        <h2>Resource usage</h2>
        <RangePicker ranges={dayRanges} minutes={minutes} onPick={pick} />
      </div>
      {isPending && <Loading />}
      {answer === undefined && <ErrorNote error={error} />}
      {answer?.series.length === 0 && <p className="muted">The driver of this node reports no measurements.</p>}
      {answer && answer.series.length > 0 && <AllSeries answer={answer} />}
    </section>
  )
}
