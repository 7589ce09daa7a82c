// Handler of the charts of the cluster.
import type * as api from '../../../api/service/charts.ts'
import type { History } from '../../http/history.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

export function charts({ history }: { readonly history: History }): HandlersOf<typeof api> {
  return { getCharts: ({ query }) => history.charts(query?.minutes) }
}
