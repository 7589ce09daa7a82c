// The page of one runner pool: jobs, runners, queue times and settings.
import { Link } from 'wouter'
import {
  getRunnerPool,
  listRunnerJobs,
  listRunnerPools,
  type RunnerJob,
  type RunnerPool,
} from '../../../src/api/vms/runner-pools.ts'
import { useLive } from '../../api/live.ts'
import { Card, Facts, ListError, Loading, Note } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table, timeColumn } from '../../ui/table/table.tsx'
import { Time } from '../../ui/time.tsx'
import { took } from '../../ui/time-words.ts'
import { DetailPage } from '../detail-page.tsx'
import { EventsCard } from '../event-feed.tsx'
import { type Named, vmPath } from '../paths.ts'
import { Counts } from '../pools/family.tsx'
import { runnerPoolItems } from './actions.tsx'
import { isProblem, jobState, jobsOf, stateOf, waitOf } from './model.ts'

const endReasons = {
  Finished: 'Finished a job',
  Idle: 'More runners than jobs',
  Drained: 'Pool drained',
  Deleted: 'Pool deleted',
  VmDeleted: 'VM deleted before its job ended',
  NotConnected: 'Failed: did not connect',
  GuestEnded: 'Failed: guest powered off',
  DeployFailed: 'Failed: VM not deployed',
  StartFailed: 'Failed: not started by SSH',
  RunnerGone: 'Failed: removed at GitHub',
  RegistrationFailed: 'Failed: not registered',
  RegistrationLost: 'Server stopped during setup',
}

export const RunnerPoolDetail = ({ namespace, name }: Named) => (
  <DetailPage
    list={useLive(listRunnerPools, [namespace])}
    noun="Runner pool"
    path="/runner-pools"
    operation={getRunnerPool}
    params={{ namespace, runnerpool: name }}
    namespace={namespace}
    name={name}
    state={(pool) => <State {...stateOf(pool)} />}
    itemsOf={runnerPoolItems}
  >
    {(pool) => (
      <>
        {isProblem(pool) && <Note tone="bad">{pool.condition.message}</Note>}
        <Card title="Jobs">
          <Jobs pool={pool} />
        </Card>
        <div className="grid-2">
          <Card title="Runners">
            <Facts
              facts={{
                Starting: pool.starting,
                Idle: pool.idle,
                Running: pool.running,
                Maximum: pool.max,
                'Announced to GitHub': pool.capacity,
              }}
            />
          </Card>
          <Card title="Queue time">
            <QueueTime pool={pool} />
          </Card>
          <Card title="Ended runners">
            <Counts counts={pool.ended} reasons={endReasons} empty="No runner has ended yet." />
          </Card>
          <Card title="Settings">
            <Settings pool={pool} />
          </Card>
        </div>
        <EventsCard namespaces={[namespace]} kinds={['runner-pools']} name={name} since={pool.createdAt} />
      </>
    )}
  </DetailPage>
)

const columns: readonly Column<RunnerJob>[] = [
  { title: 'Job', look: 'name', by: ({ name }) => name },
  { title: 'Repository', by: ({ repository }) => repository, look: 'wide' },
  { title: 'State', cell: (job) => <State {...jobState(job)} /> },
  {
    title: 'VM',
    look: 'wide',
    cell: ({ namespace, runner, state }) =>
      runner !== undefined && state === 'Running' ? (
        <Link href={vmPath({ namespace, name: runner })}>{runner}</Link>
      ) : (
        runner
      ),
  },
  timeColumn('Queued', ({ queuedAt }) => queuedAt),
  {
    title: 'Wait',
    look: 'number',
    cell: (job) => {
      const seconds = waitOf(job)
      return seconds === undefined ? undefined : took(seconds)
    },
  },
  {
    title: 'Run',
    cell: ({ link }) => (
      <a href={link} target="_blank" rel="noreferrer">
        Open at GitHub
      </a>
    ),
  },
]

/** The state column cannot be sorted, so rows keep the order of the model until the user sorts by another one. */
const byState = [2, false] as const

function Jobs({ pool: { namespace, name } }: { readonly pool: RunnerPool }) {
  const list = useLive(listRunnerJobs, [namespace])
  const jobs = jobsOf(list.items, name)
  return (
    <>
      <ListError list={list} />
      {!list.isLoaded ? (
        list.error === undefined && <Loading />
      ) : jobs.length === 0 ? (
        <p className="muted">No jobs in the last 24 hours.</p>
      ) : (
        <Table label="Jobs" columns={columns} rows={jobs} keyOf={({ id }) => id} sort={byState} />
      )}
    </>
  )
}

function QueueTime({ pool: { queueSeconds, waiting, oldestWaitingSeconds } }: { readonly pool: RunnerPool }) {
  if (!queueSeconds && waiting === 0) return <p className="muted">No job has started in the last 24 hours.</p>
  return (
    <Facts
      facts={{
        Waiting: waiting,
        'Longest current wait': waiting === 0 ? undefined : took(oldestWaitingSeconds),
        Median: queueSeconds && took(queueSeconds.p50),
        '95th percentile': queueSeconds && took(queueSeconds.p95),
      }}
    />
  )
}

const Settings = ({ pool }: { readonly pool: RunnerPool }) => (
  <Facts
    facts={{
      'Jobs of': (
        <a href={pool.url} target="_blank" rel="noreferrer">
          {pool.url}
        </a>
      ),
      'Scale set': pool.scaleSet,
      'Runner group': pool.group,
      Labels: pool.labels.join(', '),
      Credentials: pool.credential.kind === 'token' ? 'Token' : `GitHub App ${pool.credential.appId ?? ''}`,
      Configuration: pool.config,
      'Started by': pool.sshUser === undefined ? 'First-boot data' : `SSH as ${pool.sshUser}`,
      'Minimum idle': pool.minIdle,
      Owner: pool.owner,
      Created: <Time at={pool.createdAt} />,
    }}
  />
)
