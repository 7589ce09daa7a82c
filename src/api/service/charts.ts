// Charts of the last day, from what the server remembers of itself.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'

const chartNames = ['runningVms', 'deploySeconds', 'bytesPerSecond', 'apiSeconds', 'apiSecondsP99'] as const

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
  summary: 'Show charts of the last day: running VMs, deploy time, traffic, response time',
  description:
    'For the whole cluster, minute by minute, since this server started. ' +
    'Times are medians per minute, and the 99th percentile of responses. `/metrics` has more.',
  query: t.Object({
    minutes: t.Optional(t.Integer({ minimum: 1, maximum: 1_440, description: 'Number of latest values' })),
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
