// Runner pools: whether each hears of jobs, how many wait, and how many run.
import { createRunnerPool, listRunnerPools, type RunnerPool } from '../../../src/api/vms/runner-pools.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { State } from '../../ui/state.tsx'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { took } from '../../ui/time-words.ts'
import { nameColumn } from '../links.tsx'
import { runnerPoolPath } from '../paths.ts'
import { RunnerPoolMenu } from './actions.tsx'
import { stateOf } from './model.ts'
import { runnerPoolTexts as words } from './texts.ts'

const columns: readonly Column<RunnerPool>[] = [
  nameColumn(runnerPoolPath),
  { title: texts.common.namespace, by: ({ namespace }) => namespace, look: 'lesser wide' },
  { title: words.columns.scope, by: ({ url }) => url.replace(/^https?:\/\//, ''), look: 'lesser wide' },
  { title: texts.common.state, by: (pool) => stateOf(pool).word, cell: (pool) => <State {...stateOf(pool)} /> },
  { title: words.columns.waiting, by: ({ waiting }) => waiting, look: 'number wide' },
  { title: words.columns.starting, by: ({ starting }) => starting, look: 'number wide' },
  { title: words.columns.idle, by: ({ idle }) => idle, look: 'number wide' },
  { title: words.columns.running, by: ({ running }) => running, look: 'number' },
  { title: words.columns.max, by: ({ max }) => max, look: 'number wide' },
  {
    title: words.columns.queue,
    by: ({ queueSeconds }) => queueSeconds?.p95 ?? -1,
    cell: ({ queueSeconds }) => queueSeconds && took(queueSeconds.p95),
    look: 'number lesser wide',
  },
  actionsColumn((pool) => <RunnerPoolMenu pool={pool} size="small" />),
]

export function RunnerPoolList() {
  const { shown, main } = useNamespaces()
  const params = { namespace: main }
  const body = { name: 'ios', url: 'https://github.com/acme', config: 'ios-build', max: 8 }
  return (
    <TablePage
      words={words}
      operation={listRunnerPools}
      input={{ params }}
      example={commandLine(createRunnerPool, { params, body })}
      list={useLive(listRunnerPools, shown)}
      columns={columns}
    />
  )
}
