// One host: capacity, VMs, cached images, tags, and what was done to it.
import { Link, useLocation } from 'wouter'
import { listNodes } from '../../../src/api/nodes/nodes.ts'
import { useLive } from '../../api/live.ts'
import { texts } from '../../texts.ts'
import { Bar } from '../../ui/bar.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Card, Facts, Loading, Page } from '../../ui/page.tsx'
import { NodeState } from '../../ui/state.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { Time } from '../../ui/time.tsx'
import { CopiesOnNode } from '../images/image-copies.tsx'
import { EventFeed } from '../service/event-feed.tsx'
import { VmLink } from '../vms/vm-link.tsx'
import { capacityOf } from './fleet.ts'
import { NodeMenu } from './node-menu.tsx'

const words = texts.nodes

interface Props {
  readonly params: { readonly namespace?: string; readonly name?: string }
}

export function NodeDetail({ params: { namespace = '', name = '' } }: Props) {
  const { items, isLoaded } = useLive(listNodes, [namespace])
  const [, go] = useLocation()
  const node = items.find((each) => each.name === name)
  const above = <Link href="/nodes">{words.title}</Link>
  if (!node)
    return (
      <Page title={name} above={above}>
        {isLoaded ? <Empty title={words.gone} text={texts.common.notFoundText} /> : <Loading />}
      </Page>
    )
  const { cores, memory } = capacityOf(node)
  return (
    <Page
      title={node.name}
      above={above}
      beside={<NodeState node={node} />}
      actions={
        <>
          <TeachPage operation={listNodes} input={{ params: { namespace } }} />
          <NodeMenu node={node} onDeleted={() => go('/nodes')} />
        </>
      }
    >
      {node.reason !== undefined && (
        <div className="note" data-tone="warn">
          {node.reason}
        </div>
      )}
      <div className="grid-2">
        <Card title={texts.overview.capacity}>
          {[[words.columns.cores, cores] as const, [words.columns.memory, memory] as const].map(([label, part]) => (
            <div key={label} className="measure">
              <div className="spread">
                <span className="muted">{label}</span>
                <span className="tabular">{texts.overview.used(...part.text)}</span>
              </div>
              <Bar
                role="meter"
                label={label}
                value={part.used}
                of={part.whole}
                text={texts.overview.used(...part.text)}
              />
            </div>
          ))}
          <span className="muted">{texts.overview.vmsOn(node.vms.length, node.maxVms)}</span>
        </Card>
        <Card title={texts.vms.details}>
          <Facts
            facts={[
              [texts.common.namespace, node.namespace],
              [texts.common.type, texts.vms.architectures[node.architecture]],
              [
                words.address,
                <span key="ip" className="mono">
                  {node.nodeIP}
                </span>,
              ],
              [words.driver, node.driver],
              [words.system, node.os],
              [words.version, node.version],
              [
                words.columns.tags,
                node.orkaTags.length === 0 ? (
                  texts.common.none
                ) : (
                  <span key="tags" className="line">
                    {node.orkaTags.map((tag) => (
                      <span key={tag} className="tag">
                        {tag}
                      </span>
                    ))}
                  </span>
                ),
              ],
              node.lastSeenAt === undefined || node.phase === 'READY'
                ? undefined
                : [words.columns.seen, <Time key="seen" at={node.lastSeenAt} />],
            ]}
          />
        </Card>
        <Card title={words.vmsHere}>
          <Vms names={node.vms} />
        </Card>
        <Card title={words.images}>
          <CopiesOnNode namespace={namespace} name={name} />
        </Card>
      </div>
      <Card title={texts.vms.events}>
        <EventFeed namespace={namespace} kinds={['nodes', 'agent']} name={name} empty={texts.vms.noEvents} />
      </Card>
    </Page>
  )
}

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
