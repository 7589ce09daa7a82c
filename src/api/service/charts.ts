// Charts of the cluster, which its servers record, and of VMs and nodes, which agents measure.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'

const clusterCharts = [
  'runningVms',
  'deploySeconds',
  'deploySecondsP95',
  'queueSeconds',
  'queueSecondsP95',
  'bytesPerSecond',
  'apiSeconds',
  'apiSecondsP99',
] as const
const units = ['1', 's', 'B/s', 'B', '%'] as const

/** The schema of series with these names. */
export const chartsOf = <const N extends string>(title: string, names: readonly N[]) =>
  t.Object(
    {
      stepSeconds: t.Integer({ description: 'Seconds between two values' }),
      series: t.Array(
        t.Object({
          name: t.Enum(names as N[]),
          unit: t.Enum(units),
          start: t.Integer({ description: 'Time of the first value, in seconds since 1970' }),
          values: t.Array(t.Union([t.Number(), t.Null()]), {
            maxItems: 1_440,
            description: 'Null: no data',
          }),
        }),
      ),
    },
    { title },
  )

export const Charts = chartsOf('Charts', clusterCharts)
export type Charts = t.Static<typeof Charts>

/** Agents keep their measurements for a day. */
export const MeasuredQuery = t.Object({
  minutes: t.Optional(
    t.Integer({
      minimum: 1,
      maximum: 1_440,
      description: 'How far back; up to 60: every 10 s, more: by the minute (default: 60)',
    }),
  ),
})

export const getCharts = operation({
  id: 'getCharts',
  noun: 'charts',
  method: 'GET',
  path: `${base}/charts`,
  allow: 'user',
  summary: 'Show charts of the last week: running VMs, deploy and queue time, traffic, response time',
  description:
    'For the whole cluster: minute by minute for up to a day, every 15 minutes for more. Restarts do not lose it. ' +
    'Times are medians and percentiles (P95, P99) of each step; `runningVms` is its highest value. `/metrics` has more.',
  query: t.Object({
    minutes: t.Optional(
      t.Integer({
        minimum: 1,
        maximum: 10_080,
        description: 'How far back; more than 1440: by 15 minutes (default: 1440)',
      }),
    ),
  }),
  response: Charts,
  example: {
    response: {
      stepSeconds: 60,
      series: [{ name: 'runningVms', unit: '1', start: 1_763_200_800, values: [3, 4, null] }],
    },
  },
})
