// All nodes on one screen: a few with meters, many as a grid of cells colored by load.
import { type KeyboardEvent, memo, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import { count, oneDecimal } from '../../ui/sizes.ts'
import { NameLink } from '../links.tsx'
import { NodeCapacity, NodeState } from '../nodes/state.tsx'
import { nodePath } from '../paths.ts'
import { capacityBy, inNaturalOrder, loadOf } from './fleet.ts'

const kindTitles = { architecture: 'Architecture', namespace: 'Namespace' }

const legend = (load: string) =>
  ({
    '0': 'Under 25% used',
    '25': '25%',
    '50': '50%',
    '75': '75%',
    '90': '90% or more',
    cordoned: 'Cordoned',
    lost: 'Not connected',
  })[load] ?? load

/** If there are more nodes than this, they are drawn as cells. */
const drawnInFull = 12
/** Lower bounds of the load classes, each with its color. */
const steps = [0, 25, 50, 75, 90] as const

const keyOf = ({ namespace, name }: Node): string => `${namespace}/${name}`

/** Cells shrink with their number so that all fit on one screen. */
const sizeOf = (count: number): string => (count <= 120 ? 'large' : count <= 400 ? 'middle' : 'small')

export function NodeMap({ nodes }: { readonly nodes: readonly Node[] }) {
  const sorted = useMemo(() => inNaturalOrder(nodes), [nodes])
  return (
    <>
      <div className="grid-2">
        <Totals kind="architecture" nodes={nodes} />
        {nodes.some(({ namespace }) => namespace !== nodes[0]?.namespace) && <Totals kind="namespace" nodes={nodes} />}
      </div>
      {sorted.length <= drawnInFull ? (
        <div className="grid-nodes">
          {sorted.map((node) => (
            <div key={keyOf(node)} className="stack-tight">
              <div className="spread">
                <NameLink name={node.name} path={nodePath(node)} />
                <NodeState node={node} />
              </div>
              <NodeCapacity node={node} size="small" />
            </div>
          ))}
        </div>
      ) : (
        <>
          <Cells nodes={sorted} />
          <Legend />
        </>
      )}
    </>
  )
}

/** The cells are one tab stop; arrow keys move between them. */
function Cells({ nodes }: { readonly nodes: readonly Node[] }) {
  const list = useRef<HTMLUListElement>(null)
  const [at, setAt] = useState(0)
  const move = (event: KeyboardEvent): void => {
    const all = [...(list.current?.querySelectorAll('a') ?? [])]
    const top = all[0]?.offsetTop
    const inRow = all.findIndex((each) => each.offsetTop !== top)
    const across = inRow < 0 ? all.length : inRow
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: across,
      ArrowUp: -across,
      Home: -all.length,
      End: all.length,
    }
    const step = steps[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = Math.min(all.length - 1, Math.max(0, all.indexOf(event.target as HTMLAnchorElement) + step))
    setAt(next)
    all[next]?.focus()
  }
  return (
    <ul ref={list} className="cells" data-size={sizeOf(nodes.length)} aria-label="Nodes by load" onKeyDown={move}>
      {nodes.map((node, index) => (
        <Cell key={keyOf(node)} node={node} isStop={index === Math.min(at, nodes.length - 1)} />
      ))}
    </ul>
  )
}

const Cell = memo(({ node, isStop }: { readonly node: Node; readonly isStop: boolean }) => (
  <li>
    <Link
      href={nodePath(node)}
      tabIndex={isStop ? 0 : -1}
      data-load={stateOf(node)}
      title={labelOf(node)}
      aria-label={labelOf(node)}
    />
  </li>
))

const stepOf = (load: number): number => steps.findLast((step) => load >= step) ?? 0

function stateOf(node: Node): string {
  if (node.phase !== 'READY') return 'lost'
  return node.cordoned ? 'cordoned' : String(stepOf(loadOf(node)))
}

function labelOf(node: Node): string {
  if (node.phase !== 'READY') return `${node.name}: not connected`
  const usage = `${node.name}: ${loadOf(node)}% used, ${count(node.vms.length, 'VM', 'VMs')}`
  return node.cordoned ? `${usage}, cordoned` : usage
}

const Legend = () => (
  <p className="legend muted small">
    {[...steps.map(String), 'cordoned', 'lost'].map((load) => (
      <span key={load}>
        <i data-load={load} />
        {legend(load)}
      </span>
    ))}
  </p>
)

/** Rows beyond this number become one link to the page of nodes. */
const totalsShown = 6

interface TotalsProps {
  readonly kind: 'architecture' | 'namespace'
  readonly nodes: readonly Node[]
}

function Totals({ kind, nodes }: TotalsProps) {
  const all = useMemo(() => capacityBy(kind, nodes), [kind, nodes])
  const more = all.length - totalsShown
  return (
    <table className="totals">
      <thead>
        <tr>
          {[kindTitles[kind], 'Nodes ready', 'Cores free', 'Memory free', 'Largest VM that fits now'].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.slice(0, totalsShown).map(({ name, ready, nodes, ...has }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{`${ready} of ${nodes}`}</td>
            <td>{`${has.freeCores} of ${has.cores}`}</td>
            <td>{`${oneDecimal(has.freeGib)} of ${oneDecimal(has.gib)} GiB`}</td>
            <td>
              {has.largest
                ? `${count(has.largest.cores, 'core', 'cores')}, ${oneDecimal(has.largest.gib)} GiB`
                : 'None'}
            </td>
          </tr>
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={5}>
              <Link href="/nodes">{`${count(more, 'more namespace', 'more namespaces')}`}</Link>
            </td>
          </tr>
        )}
      </tbody>
    </table>
  )
}
