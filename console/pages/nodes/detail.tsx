// One host: capacity, VMs, cached images, tags, and what was done to it.
import { useLocation } from 'wouter'
import { listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Card, DetailPage, Facts, Note, Tags } from '../../ui/page.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { EventFeed } from '../event-feed.tsx'
import { CopiesOnNode } from '../images/copies.tsx'
import { VmLink } from '../links.tsx'
import type { Named } from '../paths.ts'
import { NodeMenu } from './actions.tsx'
import { Capacity, NodeState } from './state.tsx'
import { nodeTexts as words } from './texts.ts'

export function NodeDetail({ namespace, name }: Named) {
  const [, go] = useLocation()
  return (
    <DetailPage
      list={useLive(listNodes, [namespace])}
      name={name}
      up={[words.title, '/nodes']}
      gone={{ title: words.gone, text: words.goneText(name, namespace) }}
      beside={(node) => <NodeState node={node} />}
      actions={(node) => (
        <>
          <TeachPage operation={listNodes} input={{ params: { namespace } }} />
          <NodeMenu node={node} onDeleted={() => go('/nodes')} />
        </>
      )}
    >
      {(node) => (
        <>
          {node.reason !== undefined && <Note tone="warn">{node.reason}</Note>}
          <div className="grid-2">
            <Card title={words.capacity}>
              <Capacity node={node} />
            </Card>
            <Card title={texts.common.details}>
              <Details node={node} />
            </Card>
            <Card title={words.vmsHere}>
              <Vms names={node.vms} />
            </Card>
            <Card title={words.images}>
              <CopiesOnNode namespace={namespace} name={name} />
            </Card>
          </div>
          <Card title={texts.common.events}>
            <EventFeed namespace={namespace} kinds={['nodes', 'agent']} name={name} empty={texts.common.noEvents} />
          </Card>
        </>
      )}
    </DetailPage>
  )
}

const Details = ({ node }: { readonly node: Node }) => (
  <Facts
    facts={{
      [texts.common.namespace]: node.namespace,
      [texts.common.type]: texts.common.architectures[node.architecture],
      [words.address]: <span className="mono">{node.nodeIP}</span>,
      [words.driver]: node.driver,
      [words.system]: node.os,
      [words.version]: node.version,
      [words.columns.tags]: node.orkaTags.length === 0 ? texts.common.none : <Tags tags={node.orkaTags} />,
      [words.columns.seen]:
        node.lastSeenAt === undefined || node.phase === 'READY' ? undefined : <Time at={node.lastSeenAt} />,
    }}
  />
)

function Vms({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <p className="muted">{words.noVms}</p>
  return (
    <ul className="feed">
      {names.map((name) => (
        <li key={name}>
          <VmLink vm={name} />
        </li>
      ))}
    </ul>
  )
}
