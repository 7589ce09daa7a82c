// One runner pool: its jobs with their VMs and runs, its runners, how long jobs wait, how runners ended, and its settings.
import { Link } from 'wouter'
import {
  getRunnerPool,
  listRunnerJobs,
  listRunnerPools,
  type RunnerJob,
  type RunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Card, Facts, Loaded, Note } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table, timeColumn } from '../../ui/table/table.tsx'
import { Time } from '../../ui/time.tsx'
import { took } from '../../ui/time-words.ts'
import { type Named, vmPath } from '../paths.ts'
import { Counts, PoolPage } from '../pools/family.tsx'
import { runnerPoolItems } from './actions.tsx'
import { isProblem, jobState, jobsOf, stateOf, waitOf } from './model.ts'
import { runnerPoolTexts as words } from './texts.ts'

export const RunnerPoolDetail = ({ namespace, name }: Named) => (
  <PoolPage
    list={useLive(listRunnerPools, [namespace])}
    words={words}
    path="/runner-pools"
    operation={getRunnerPool}
    params={{ namespace, runnerpool: name }}
    kind="runner-pools"
    namespace={namespace}
    name={name}
    stateOf={stateOf}
    itemsOf={runnerPoolItems}
  >
    {(pool) => (
      <>
        {isProblem(pool) && <Note tone="bad">{pool.condition.message}</Note>}
        <Card title={words.jobs}>
          <Jobs pool={pool} />
        </Card>
        <div className="grid-2">
          <Card title={words.runners}>
            <Facts
              facts={{
                [words.columns.starting]: pool.starting,
                [words.columns.idle]: pool.idle,
                [words.columns.running]: pool.running,
                [words.columns.max]: pool.max,
                [words.announced]: pool.capacity,
              }}
            />
          </Card>
          <Card title={words.queueTime}>
            <QueueTime pool={pool} />
          </Card>
          <Card title={words.ended}>
            <Counts counts={pool.ended} reasons={words.reasons} empty={words.endedNone} />
          </Card>
          <Card title={words.settings}>
            <Settings pool={pool} />
          </Card>
        </div>
      </>
    )}
  </PoolPage>
)

const columns: readonly Column<RunnerJob>[] = [
  { title: words.job.name, look: 'name', by: ({ name }) => name },
  { title: words.job.repository, by: ({ repository }) => repository, look: 'wide' },
  { title: words.job.state, cell: (job) => <State {...jobState(job)} /> },
  {
    title: words.job.vm,
    look: 'wide',
    cell: ({ namespace, runner, state }) =>
      runner !== undefined && state === 'Running' ? (
        <Link href={vmPath({ namespace, name: runner })}>{runner}</Link>
      ) : (
        runner
      ),
  },
  timeColumn(words.job.queued, ({ queuedAt }) => queuedAt),
  {
    title: words.job.wait,
    look: 'number',
    cell: (job) => {
      const seconds = waitOf(job)
      return seconds === undefined ? undefined : took(seconds)
    },
  },
  {
    title: words.job.run,
    cell: ({ link }) => (
      <a href={link} target="_blank" rel="noreferrer">
        {words.openRun}
      </a>
    ),
  },
]

/** In the order of the model until somebody sorts them: the column of states has none. */
const byState = [2, false] as const

function Jobs({ pool: { namespace, name } }: { readonly pool: RunnerPool }) {
  const list = useLive(listRunnerJobs, [namespace])
  const jobs = jobsOf(list.items, name)
  return (
    <Loaded list={list}>
      {jobs.length === 0 ? (
        <p className="muted">{words.noJobs}</p>
      ) : (
        <Table label={words.jobs} columns={columns} rows={jobs} keyOf={({ id }) => id} sort={byState} />
      )}
    </Loaded>
  )
}

function QueueTime({ pool: { queueSeconds, waiting, oldestWaitingSeconds } }: { readonly pool: RunnerPool }) {
  if (!queueSeconds && waiting === 0) return <p className="muted">{words.noTimes}</p>
  return (
    <Facts
      facts={{
        [words.columns.waiting]: waiting,
        [words.oldest]: waiting === 0 ? undefined : took(oldestWaitingSeconds),
        [words.p50]: queueSeconds && took(queueSeconds.p50),
        [words.p95]: queueSeconds && took(queueSeconds.p95),
      }}
    />
  )
}

const Settings = ({ pool }: { readonly pool: RunnerPool }) => (
  <Facts
    facts={{
      [words.columns.scope]: (
        <a href={pool.url} target="_blank" rel="noreferrer">
          {pool.url}
        </a>
      ),
      [words.scaleSet]: pool.scaleSet,
      [words.group]: pool.group,
      [words.labels]: pool.labels.join(', '),
      [words.credential]: pool.credential.kind === 'token' ? words.token : words.app(pool.credential.appId ?? ''),
      [words.config]: pool.config,
      [words.startedBy]: pool.sshUser === undefined ? words.firstBoot : words.ssh(pool.sshUser),
      [words.minIdle]: pool.minIdle,
      [texts.common.owner]: pool.owner,
      [texts.common.created]: <Time at={pool.createdAt} />,
    }}
  />
)
