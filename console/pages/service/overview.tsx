// The overview: VMs by state, problems, active tasks, deploy times, capacity and recent events.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { getCertificate } from '../../../src/api/service/certificates.ts'
import { listEvents } from '../../../src/api/service/events.ts'
import { listPools } from '../../../src/api/vms/pools.ts'
import { listPushJobs } from '../../../src/api/vms/push-jobs.ts'
import { listVms, type Vm } from '../../../src/api/vms/vms.ts'
import { useAnswer } from '../../api/calls.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { useSession } from '../../api/session.ts'
import { Card, Empty, Loading, Page } from '../../ui/page.tsx'
import { Bar } from '../../ui/state.tsx'
import { useNow } from '../../ui/time.tsx'
import { Feed, newestFirst } from '../event-feed.tsx'
import { powerWords } from '../vms/model.ts'
import { Attention } from './attention.tsx'
import { concernsOf } from './fleet.ts'
import { workOf } from './model.ts'
import { NodeMap } from './node-map.tsx'
import { Times } from './times.tsx'

const latelyShown = 8
const tasksShown = 5

const shownStates = [
  'running',
  'pending',
  'starting',
  'stopped',
  'suspended',
  'failed',
  'unknown',
] as const satisfies readonly Vm['powerState'][]

export function Overview() {
  const { shown, main } = useNamespaces()
  const { person } = useSession()
  const vms = useLive(listVms, shown)
  const nodes = useLive(listNodes, shown)
  const pushes = useLive(listPushJobs, shown)
  const images = useLive(listImages, [main])
  const events = useLive(listEvents, shown)
  const pools = useLive(listPools, shown)
  const { data: certificate } = useAnswer(getCertificate, {})
  const nowMs = useNow()
  const concerns = useMemo(
    () => concernsOf({ vms: vms.items, nodes: nodes.items, pools: pools.items, certificate }, nowMs),
    [vms.items, nodes.items, pools.items, certificate, nowMs],
  )
  const work = workOf(vms.items, images.items, pushes.items)
  const isWorkKnown = vms.isLoaded && images.isLoaded && pushes.isLoaded
  const countOf = (state: Vm['powerState']): number => vms.items.filter((vm) => vm.powerState === state).length
  return (
    <Page title="Overview">
      <div className="figures">
        {shownStates.map((state) => (
          <Link key={state} className="figure" href={`/vms?state=${state}`}>
            <b>{vms.isLoaded ? countOf(state) : '–'}</b>
            <span className="muted">{powerWords[state]}</span>
          </Link>
        ))}
      </div>
      {vms.isLoaded && vms.items.length === 0 && nodes.items.length > 0 && (
        <Empty
          title="Deploy your first VM"
          text="Choose an image and select Deploy. You can open the screen and a terminal here."
        >
          <Link className="button" data-kind="primary" href="/vms?deploy">
            Deploy VM
          </Link>
        </Empty>
      )}
      <div className="grid-fleet">
        <Attention concerns={concerns} />
        <Card title="Active tasks">
          {work.length === 0 ? (
            <p className="muted">{isWorkKnown ? 'None' : 'Loading…'}</p>
          ) : (
            <ul className="feed">
              {work.slice(0, tasksShown).map(({ key, path, name, what, percent }) => (
                <li key={key}>
                  <span>
                    <Link href={path}>{name}</Link> <span className="muted">{what}</span>
                  </span>
                  <span className="muted tabular">{percent === undefined ? '' : `${percent}%`}</span>
                  {percent !== undefined && <Bar label={`${name}: ${what}`} value={percent} of={100} />}
                </li>
              ))}
            </ul>
          )}
          {work.length > tasksShown && <p className="muted">{`and ${work.length - tasksShown} more`}</p>}
        </Card>
        <Times />
      </div>
      <Card title="Capacity">
        {!nodes.isLoaded ? (
          <Loading />
        ) : nodes.items.length === 0 ? (
          <Empty
            title="No nodes yet"
            text={
              person?.admin ? 'Add a Mac or a Linux host with a single command.' : 'Ask an administrator to add one.'
            }
          >
            {person?.admin && (
              <Link className="button" data-kind="primary" href="/nodes?join">
                Add node
              </Link>
            )}
          </Empty>
        ) : (
          <NodeMap nodes={nodes.items} />
        )}
      </Card>
      <Card title="Recent events">
        {events.isLoaded ? (
          <Feed events={newestFirst(events.items).slice(0, latelyShown)} empty="No events yet" />
        ) : (
          <Loading />
        )}
      </Card>
    </Page>
  )
}
