// The lineage of an image, drawn: origins at the left, the image in the middle, copies and VMs at the right.
import { useLocation } from 'wouter'
import type { Lineage, LineageNode } from './lineage.ts'
import { imageTexts as words } from './texts.ts'

const box = { width: 172, height: 42, gapX: 44, gapY: 12 }
const shownAfter = 6

interface Placed {
  readonly node: LineageNode
  readonly x: number
  readonly y: number
  readonly isHere: boolean
}

export function LineageGraph({ lineage }: { readonly lineage: Lineage }) {
  const [, go] = useLocation()
  const { before, here, after } = lineage
  const shown = after.slice(0, shownAfter)
  const stepX = box.width + box.gapX
  const height = Math.max(1, shown.length) * (box.height + box.gapY) - box.gapY + 4
  const middle = (height - box.height) / 2
  const chain = [...before, here].map(
    (node, index): Placed => ({ node, x: 2 + index * stepX, y: middle, isHere: node === here }),
  )
  const last = 2 + chain.length * stepX
  const ends = shown.map(
    (node, index): Placed => ({ node, x: last, y: 2 + index * (box.height + box.gapY), isHere: false }),
  )
  const from = chain.at(-1)
  const width = (shown.length > 0 ? last + box.width : last - box.gapX) + 2
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <figure className="lineage" tabIndex={0} aria-label={words.lineageOf(here.name)}>
      <svg width={width} height={height} role="img" aria-label={words.lineageOf(here.name)}>
        {chain.slice(1).map(({ x, y, node }) => (
          <path key={node.key} d={`M${x - box.gapX} ${y + box.height / 2}h${box.gapX}`} />
        ))}
        {from &&
          ends.map(({ x, y, node }) => {
            const [x0, y0, y1] = [from.x + box.width, from.y + box.height / 2, y + box.height / 2]
            return <path key={node.key} d={`M${x0} ${y0}C${x0 + 22} ${y0} ${x - 22} ${y1} ${x} ${y1}`} />
          })}
        {[...chain, ...ends].map(({ node, x, y, isHere }) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the same links stand in the list of who uses it
          <g
            key={node.key}
            className={isHere ? 'here' : undefined}
            onClick={() => node.path !== undefined && !isHere && go(node.path)}
            style={node.path !== undefined && !isHere ? { cursor: 'pointer' } : undefined}
          >
            <title>{node.name}</title>
            <rect x={x} y={y} width={box.width} height={box.height} rx={7} />
            <text x={x + 10} y={y + 18}>
              {cut(node.name)}
            </text>
            <text x={x + 10} y={y + 33} className="quiet">
              {cut(node.what)}
            </text>
          </g>
        ))}
      </svg>
    </figure>
  )
}

const cut = (text: string): string => (text.length > 20 ? `${text.slice(0, 19)}…` : text)
