// The nodes of a fleet on one screen: few with their figures, many as a map of cells, coloured by load.
import { Link } from 'wouter'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import { NameLink } from '../links.tsx'
import { Capacity, NodeState } from '../nodes/state.tsx'
import { nodePath } from '../paths.ts'
import { capacityByArchitecture, inNaturalOrder, loadOf } from './fleet.ts'
import { fleetTexts as words } from './texts.ts'

/** More are cells: their bars would fill more than one screen. */
const drawnInFull = 12
/** Steps of load, each with a colour of its own. */
const steps = [0, 25, 50, 75, 90] as const

const keyOf = ({ namespace, name }: Node): string => `${namespace}/${name}`

export function NodeMap({ nodes }: { readonly nodes: readonly Node[] }) {
  const sorted = inNaturalOrder(nodes)
  return (
    <>
      <Totals nodes={nodes} />
      {sorted.length <= drawnInFull ? (
        <div className="grid-3">
          {sorted.map((node) => (
            <div key={keyOf(node)} className="stack-tight">
              <div className="spread">
                <NameLink name={node.name} path={nodePath(node)} />
                <NodeState node={node} />
              </div>
              <Capacity node={node} size="small" />
            </div>
          ))}
        </div>
      ) : (
        <>
          <ul className="cells">
            {sorted.map((node) => (
              <li key={keyOf(node)}>
                <Link
                  href={nodePath(node)}
                  data-load={stateOf(node)}
                  title={wordsOf(node)}
                  aria-label={wordsOf(node)}
                />
              </li>
            ))}
          </ul>
          <Legend />
        </>
      )}
    </>
  )
}

const stepOf = (load: number): number => steps.findLast((step) => load >= step) ?? 0

function stateOf(node: Node): string {
  if (node.phase !== 'READY') return 'lost'
  return node.cordoned ? 'cordoned' : String(stepOf(loadOf(node)))
}

function wordsOf(node: Node): string {
  if (node.phase !== 'READY') return words.cellLost(node.name)
  const said = words.cell(node.name, loadOf(node), node.vms.length)
  return node.cordoned ? words.cellCordoned(said) : said
}

const Legend = () => (
  <p className="legend muted small">
    {[...steps.map(String), 'cordoned', 'lost'].map((load) => (
      <span key={load}>
        <i data-load={load} />
        {words.legend(load)}
      </span>
    ))}
  </p>
)

function Totals({ nodes }: { readonly nodes: readonly Node[] }) {
  return (
    <table className="totals">
      <thead>
        <tr>
          {words.totals.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {capacityByArchitecture(nodes).map(({ architecture, ready, nodes: all, ...has }) => (
          <tr key={architecture}>
            <th scope="row">{architecture}</th>
            <td>{words.amount(ready, all)}</td>
            <td>{words.amount(has.freeCores, has.cores)}</td>
            <td>{words.memory(has.freeGib, has.gib)}</td>
            <td>{has.largest ? words.largest(has.largest.cores, has.largest.gib) : words.nothingFits}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
