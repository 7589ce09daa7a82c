// One pool: its warm VMs, how often they were there, why some went, its settings, and what was done to it.
import { getPool, listPools, type Pool, type SlotEndReason } from '../../../src/api/vms/pools.ts'
import { scheduleLine } from '../../../src/rules/pools/schedule-line.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { ActionsMenu } from '../../ui/menu.tsx'
import { Card, DetailPage, Facts, Note } from '../../ui/page.tsx'
import { State } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'
import type { Named } from '../paths.ts'
import { poolItems } from './actions.tsx'
import { hitPercent, stateOf } from './model.ts'
import { poolTexts as words } from './texts.ts'

export function PoolDetail({ namespace, name }: Named) {
  const acting = useActing()
  return (
    <DetailPage
      list={useLive(listPools, [namespace])}
      name={name}
      namespace={namespace}
      up={[words.title, '/pools']}
      gone={{ title: words.gone, text: words.goneText(name, namespace) }}
      beside={(pool) => <State {...stateOf(pool)} />}
      actions={(pool) => (
        <>
          <TeachPage operation={getPool} input={{ params: { namespace, pool: name } }} />
          <ActionsMenu name={name} items={poolItems(pool, { ...acting, onDeleted: () => acting.go('/pools') })} />
        </>
      )}
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
              <Removed pool={pool} />
            </Card>
          </div>
          <Card title={texts.common.events}>
            <EventFeed
              namespaces={[namespace]}
              kinds={['pools']}
              name={name}
              since={pool.createdAt}
              empty={texts.common.noEvents}
            />
          </Card>
        </>
      )}
    </DetailPage>
  )
}

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
      [words.state]: words.stateWords[pool.state],
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

function Removed({ pool: { removed } }: { readonly pool: Pool }) {
  const counts = Object.entries(removed) as [SlotEndReason, number][]
  if (counts.length === 0) return <p className="muted">{words.removedNone}</p>
  return <Facts facts={Object.fromEntries(counts.map(([reason, count]) => [words.reasons[reason], count]))} />
}
