// The page of one node.
import { lazy, Suspense } from 'react'
import { getNodeCharts, listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import { useLive } from '../../api/live.ts'
import { architectures } from '../../ui/architectures.ts'
import { Card, Facts, Loading, Note, Tags } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { DetailPage } from '../detail-page.tsx'
import { EventsCard } from '../event-feed.tsx'
import { CopiesOnNode } from '../images/copies.tsx'
import type { Named } from '../paths.ts'
import { nodeItems } from './actions.tsx'
import { Blocks } from './blocks.tsx'
import { HostChecks, hasProblem } from './checks.tsx'
import { NodeCapacity, NodeState } from './state.tsx'

const MeasuredCharts = lazy(async () => ({ default: (await import('../charts/measured.tsx')).MeasuredCharts }))

export const NodeDetail = ({ namespace, name }: Named) => (
  <DetailPage
    list={useLive(listNodes, [namespace])}
    name={name}
    noun="Node"
    path="/nodes"
    namespace={namespace}
    operation={listNodes}
    params={{ namespace }}
    state={(node) => <NodeState node={node} />}
    itemsOf={nodeItems}
  >
    {(node) => (
      <>
        {node.reason !== undefined && <Note tone="warn">{node.reason}</Note>}
        {node.checks && hasProblem(node.checks) && <HostChecks checks={node.checks} />}
        {node.phase === 'READY' && (
          <Suspense fallback={<Loading />}>
            <MeasuredCharts key={node.uid} operation={getNodeCharts} params={{ namespace, name }} />
          </Suspense>
        )}
        <div className="grid-2">
          <Card title="Capacity">
            <NodeCapacity node={node} />
          </Card>
          <Card title="Details">
            <Details node={node} />
          </Card>
          {node.checks && !hasProblem(node.checks) && <HostChecks checks={node.checks} />}
          <Card title="VMs">
            <Blocks node={node} />
          </Card>
          <Card title="Cached images">
            <CopiesOnNode namespace={namespace} name={name} />
          </Card>
        </div>
        <EventsCard
          namespaces={[namespace]}
          kinds={['nodes', 'agent']}
          name={name}
          uid={node.uid}
          since={node.createdAt}
        />
      </>
    )}
  </DetailPage>
)

const Details = ({ node }: { readonly node: Node }) => (
  <Facts
    facts={{
      Namespace: node.namespace,
      Type: architectures[node.architecture],
      Address: <span className="mono">{node.nodeIP}</span>,
      Driver: node.driver,
      System: node.os,
      'Agent version': node.version,
      Tags: node.orkaTags.length === 0 ? 'None' : <Tags tags={node.orkaTags} />,
      'Last seen': node.lastSeenAt === undefined || node.phase === 'READY' ? undefined : <Time at={node.lastSeenAt} />,
    }}
  />
)
