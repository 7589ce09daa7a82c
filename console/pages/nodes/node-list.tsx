// The hosts: what they have, what is free, in which state; and how another one joins.
import { Link, useLocation, useSearch } from 'wouter'
import { listNodes, type Node } from '../../../src/api/nodes/nodes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Button } from '../../ui/button.tsx'
import { RecordsPage } from '../../ui/records-page.tsx'
import { NodeState } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { nodePath } from '../paths.ts'
import { capacityOf } from './fleet.ts'
import { JoinHost } from './join-host.tsx'
import { NodeMenu } from './node-menu.tsx'

const words = texts.nodes

const share = (node: Node, kind: 'cores' | 'memory') => {
  const { used, whole, text } = capacityOf(node)[kind]
  const said = texts.overview.used(...text)
  return (
    <div className="measure">
      <span className="small tabular">{said}</span>
      <Bar role="meter" label={`${node.name}: ${words.columns[kind]}`} value={used} of={whole} text={said} />
    </div>
  )
}

const columns: readonly Column<Node>[] = [
  {
    title: texts.common.name,
    by: (node) => node.name,
    cell: (node) => (
      <Link className="strong" href={nodePath(node)}>
        {node.name}
      </Link>
    ),
  },
  { title: texts.common.state, by: (node) => node.phase, cell: (node) => <NodeState node={node} /> },
  { title: texts.common.namespace, by: (node) => node.namespace, look: 'lesser wide', cell: (node) => node.namespace },
  { title: texts.common.type, by: (node) => node.architecture, look: 'wide', cell: (node) => node.architecture },
  { title: words.columns.cores, by: (node) => node.availableCpu, look: 'wide', cell: (node) => share(node, 'cores') },
  {
    title: words.columns.memory,
    by: (node) => node.availableMemory,
    look: 'wide',
    cell: (node) => share(node, 'memory'),
  },
  { title: words.columns.vms, by: (node) => node.vms.length, look: 'number', cell: (node) => node.vms.length },
  { title: words.columns.tags, look: 'lesser wide', cell: (node) => node.orkaTags.join(', ') || '–' },
  {
    title: words.columns.seen,
    by: (node) => node.lastSeenAt ?? '',
    look: 'lesser wide',
    cell: (node) =>
      node.phase === 'READY' ? (
        words.connected
      ) : node.lastSeenAt === undefined ? (
        texts.common.never
      ) : (
        <Time at={node.lastSeenAt} />
      ),
  },
  { title: texts.common.actions, look: 'end', cell: (node) => <NodeMenu node={node} size="small" /> },
]

export function NodeList() {
  const { shown, main } = useNamespaces()
  const { person } = useSession()
  const list = useLive(listNodes, shown)
  const [, go] = useLocation()
  const isJoining = new URLSearchParams(useSearch()).has('join')
  return (
    <RecordsPage
      words={words}
      teach={<TeachPage operation={listNodes} input={{ params: { namespace: main } }} />}
      create={
        <Button kind="primary" reason={person?.admin ? undefined : words.onlyAdmins} onClick={() => go('/nodes?join')}>
          {words.join}
        </Button>
      }
      list={list}
      columns={columns}
      keyOf={(node) => `${node.namespace}/${node.name}`}
    >
      {isJoining && person?.admin && <JoinHost onClose={() => go('/nodes')} />}
    </RecordsPage>
  )
}
