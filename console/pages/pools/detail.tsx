// One pool: its warm VMs, how often they were there, why some went, its settings, and what was done to it.
import { getPool, listPools, type Pool } from '../../../src/api/vms/pools.ts'
import { scheduleLine } from '../../../src/rules/pools/schedule-line.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Card, Facts, Note } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import type { Named } from '../paths.ts'
import { poolItems } from './actions.tsx'
import { Counts, PoolPage } from './family.tsx'
import { hitPercent, stateOf } from './model.ts'
import { poolTexts as words } from './texts.ts'

export const PoolDetail = ({ namespace, name }: Named) => (
  <PoolPage
    list={useLive(listPools, [namespace])}
    words={words}
    path="/pools"
    operation={getPool}
    params={{ namespace, pool: name }}
    kind="pools"
    namespace={namespace}
    name={name}
    stateOf={stateOf}
    itemsOf={poolItems}
  >
    {(pool) => (
      <>
        {pool.reason !== undefined && <Note tone="warn">{pool.reason}</Note>}
        <div className="grid-2">
          <Card title={words.warmVms}>
            <Facts
              facts={{
                [words.columns.ready]: pool.ready,
                [words.columns.starting]: pool.starting,
                [words.columns.wanted]: pool.minIdleNow,
              }}
            />
          </Card>
          <Card title={words.deployments}>
            <Deployments pool={pool} />
          </Card>
          <Card title={words.settings}>
            <Settings pool={pool} />
          </Card>
          <Card title={words.removed}>
            <Counts counts={pool.removed} reasons={words.reasons} empty={words.removedNone} />
          </Card>
        </div>
      </>
    )}
  </PoolPage>
)

function Deployments({ pool }: { readonly pool: Pool }) {
  const percent = hitPercent(pool)
  return (
    <Facts
      facts={{
        [words.columns.hits]: pool.hits,
        [words.columns.misses]: pool.misses,
        [words.hitRate]: percent === undefined ? undefined : texts.common.percent(percent),
      }}
    />
  )
}

const Settings = ({ pool }: { readonly pool: Pool }) => (
  <Facts
    facts={{
      [words.columns.config]: pool.config,
      [words.minIdle]: pool.minIdle,
      [words.maxIdle]: pool.maxIdle,
      [words.maxAge]: pool.maxAge,
      [words.warmVms]: words.stateWords[pool.state],
      [words.readyCommand]: pool.readyCommand && <span className="mono">{pool.readyCommand}</span>,
      [words.schedule]:
        pool.schedule.length === 0
          ? undefined
          : pool.schedule.map(scheduleLine).map((line) => (
              <div key={line} className="mono">
                {line}
              </div>
            )),
      [texts.common.owner]: pool.owner,
      [texts.common.created]: <Time at={pool.createdAt} />,
    }}
  />
)
