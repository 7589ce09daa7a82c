// Charts of the last day, from what the server remembers of itself.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'

const chartNames = ['runningVms', 'deploySeconds', 'bytesPerSecond', 'apiSeconds', 'apiSecondsP99'] as const

export const Charts = t.Object(
  {
    stepSeconds: t.Integer({ description: 'Between two values' }),
    series: t.Array(
      t.Object({
        name: t.Enum(chartNames),
        unit: t.Enum(['1', 's', 'B/s']),
        start: t.Integer({ description: 'When the first value was taken, in seconds since 1970' }),
        values: t.Array(t.Union([t.Number(), t.Null()]), {
          maxItems: 1_440,
          description: 'Null: nothing happened that could be measured',
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
  summary: 'How the last day was: running VMs, time to deploy, bytes moved, time to answer',
  description:
    'Of the whole cluster as this server has seen it since it was started, minute by minute: numbers that name nobody. ' +
    'Times are medians of a minute, and the 99th percentile of answers. `/metrics` has more, for those who keep it.',
  query: t.Object({
    minutes: t.Optional(t.Integer({ minimum: 1, maximum: 1_440, description: 'Only the last so many' })),
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
