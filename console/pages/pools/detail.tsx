// The page of one pool.
import { getPool, listPools, type Pool } from '../../../src/api/vms/pools.ts'
import { scheduleLine } from '../../../src/rules/pools/schedule-line.ts'
import { useLive } from '../../api/live.ts'
import { Card, Facts, Note } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { DetailPage } from '../detail-page.tsx'
import { EventsCard } from '../event-feed.tsx'
import type { Named } from '../paths.ts'
import { poolItems } from './actions.tsx'
import { Counts } from './family.tsx'
import { hitPercent, stateOf, warmStates } from './model.ts'

const removalReasons = {
  PortInUse: 'Failed: port in use',
  StartFailed: 'Failed to start',
  GuestEnded: 'Failed: guest ended',
  NoAnswer: 'Failed: not responding',
  Evicted: 'Evicted to free capacity',
  TooMany: 'Above the maximum',
  TooOld: 'Too old',
  Changed: 'Image or configuration changed',
  Cordoned: 'Node cordoned',
  Rotated: 'Rotated',
  Drained: 'Drained',
  PoolDeleted: 'Pool deleted',
}

export const PoolDetail = ({ namespace, name }: Named) => (
  <DetailPage
    list={useLive(listPools, [namespace])}
    noun="Pool"
    path="/pools"
    operation={getPool}
    params={{ namespace, pool: name }}
    namespace={namespace}
    name={name}
    state={(pool) => <State {...stateOf(pool)} />}
    itemsOf={poolItems}
  >
    {(pool) => (
      <>
        {pool.reason !== undefined && <Note tone="warn">{pool.reason}</Note>}
        <div className="grid-2">
          <Card title="Warm VMs">
            <Facts
              facts={{
                Ready: pool.ready,
                Starting: pool.starting,
                Wanted: pool.minIdleNow,
              }}
            />
          </Card>
          <Card title="Deployments">
            <Deployments pool={pool} />
          </Card>
          <Card title="Settings">
            <Settings pool={pool} />
          </Card>
          <Card title="Removed unused">
            <Counts
              counts={pool.removed}
              reasons={removalReasons}
              empty="No warm VM was removed before a deployment took it."
            />
          </Card>
        </div>
        <EventsCard namespaces={[namespace]} kinds={['pools']} name={name} since={pool.createdAt} />
      </>
    )}
  </DetailPage>
)

function Deployments({ pool }: { readonly pool: Pool }) {
  const percent = hitPercent(pool)
  return (
    <Facts
      facts={{
        Hits: pool.hits,
        Misses: pool.misses,
        'Hit rate': percent === undefined ? undefined : `${percent}%`,
      }}
    />
  )
}

const Settings = ({ pool }: { readonly pool: Pool }) => (
  <Facts
    facts={{
      Configuration: pool.config,
      'Minimum idle': pool.minIdle,
      'Maximum idle': pool.maxIdle,
      'Maximum age': pool.maxAge,
      'Warm VMs': warmStates[pool.state],
      'Readiness command': pool.readyCommand && <span className="mono">{pool.readyCommand}</span>,
      Schedule:
        pool.schedule.length === 0
          ? undefined
          : pool.schedule.map(scheduleLine).map((line) => (
              <div key={line} className="mono">
                {line}
              </div>
            )),
      Owner: pool.owner,
      Created: <Time at={pool.createdAt} />,
    }}
  />
)
