// One host: capacity, VMs, cached images, tags, and what was done to it.
import { lazy, Suspense } from 'react'
import { getNodeCharts, listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { ActionsMenu } from '../../ui/menu.tsx'
import { Card, DetailPage, Facts, Loading, Note, Tags } from '../../ui/page.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { useActing } from '../acting.ts'
import { EventFeed } from '../event-feed.tsx'
import { CopiesOnNode } from '../images/copies.tsx'
import type { Named } from '../paths.ts'
import { nodeItems } from './actions.tsx'
import { Blocks } from './blocks.tsx'
import { Capacity, NodeState } from './state.tsx'
import { nodeTexts as words } from './texts.ts'

const Measured = lazy(async () => ({ default: (await import('../charts/measured.tsx')).Measured }))

export function NodeDetail({ namespace, name }: Named) {
  const acting = useActing()
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
          <ActionsMenu name={name} items={nodeItems(node, { ...acting, onDeleted: () => acting.go('/nodes') })} />
        </>
      )}
    >
      {(node) => (
        <>
          {node.reason !== undefined && <Note tone="warn">{node.reason}</Note>}
          {node.phase === 'READY' && (
            <Suspense fallback={<Loading />}>
              <Measured key={node.uid} operation={getNodeCharts} params={{ namespace, name }} />
            </Suspense>
          )}
          <div className="grid-2">
            <Card title={words.capacity}>
              <Capacity node={node} />
            </Card>
            <Card title={texts.common.details}>
              <Details node={node} />
            </Card>
            <Card title={words.vmsHere}>
              <Blocks node={node} />
            </Card>
            <Card title={words.images}>
              <CopiesOnNode namespace={namespace} name={name} />
            </Card>
          </div>
          <Card title={texts.common.events}>
            <EventFeed
              namespaces={[namespace]}
              kinds={['nodes', 'agent']}
              name={name}
              uid={node.uid}
              since={node.createdAt}
              empty={texts.common.noEvents}
            />
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
