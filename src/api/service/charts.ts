// Charts of the last week, from what the cluster remembers of itself.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'

const chartNames = [
  'runningVms',
  'deploySeconds',
  'deploySecondsP95',
  'queueSeconds',
  'queueSecondsP95',
  'bytesPerSecond',
  'apiSeconds',
  'apiSecondsP99',
] as const

export const Charts = t.Object(
  {
    stepSeconds: t.Integer({ description: 'Seconds between two values' }),
    series: t.Array(
      t.Object({
        name: t.Enum(chartNames),
        unit: t.Enum(['1', 's', 'B/s']),
        start: t.Integer({ description: 'Time of the first value, in seconds since 1970' }),
        values: t.Array(t.Union([t.Number(), t.Null()]), {
          maxItems: 1_440,
          description: 'Null: no data',
        }),
      }),
    ),
  },
  { title: 'Charts' },
)
export type Charts = t.Static<typeof Charts>

export const getCharts = operation({
  id: 'getCharts',
  noun: 'charts',
  method: 'GET',
  path: `${base}/charts`,
  allow: 'user',
  status: 200,
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
  refuses: [],
  example: {
    response: {
      stepSeconds: 60,
      series: [{ name: 'runningVms', unit: '1', start: 1_763_200_800, values: [3, 4, null] }],
    },
  },
})
