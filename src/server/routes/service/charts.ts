// Charts of the last day.
import type * as api from '../../../api/service/charts.ts'
import type { HandlersOf } from '../../handlers.ts'
import type { Services } from '../../services.ts'

export function charts({ history }: Services): HandlersOf<typeof api> {
  return { getCharts: ({ query }) => history.charts(query?.minutes) }
}
