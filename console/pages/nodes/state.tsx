// How a node is: its state, and what of it is in use.
import type { ReactNode } from 'react'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import { texts } from '../../texts.ts'
import { Bar, State, type Tone } from '../../ui/state.tsx'
import { capacityOf } from './model.ts'
import { nodeTexts as words } from './texts.ts'

const kinds = ['cores', 'memory'] as const

const stateOf = ({ phase, cordoned }: Node): readonly [tone: Tone, word: string] => {
  if (phase !== 'READY') return ['bad', words.notReady]
  return cordoned ? ['warn', words.cordoned] : ['good', words.ready]
}

export const stateWord = (node: Node): string => stateOf(node)[1]

export function NodeState({ node }: { readonly node: Node }) {
  const [tone, word] = stateOf(node)
  return <State tone={tone} word={word} />
}

interface MeterProps {
  readonly node: Node
  readonly kind: (typeof kinds)[number]
  readonly children: (used: string) => ReactNode
}

/** What is in use of one of its resources, in words and as a bar. */
export function Meter({ node, kind, children }: MeterProps) {
  const { used, whole, text } = capacityOf(node)[kind]
  const said = words.used[kind](...text)
  return (
    <div className="measure">
      {children(said)}
      <Bar
        role="meter"
        label={texts.common.labelled(node.name, words.columns[kind])}
        value={used}
        of={whole}
        text={said}
      />
    </div>
  )
}

export const Capacity = ({ node, size = '' }: { readonly node: Node; readonly size?: '' | 'small' }) => (
  <>
    {kinds.map((kind) => (
      <Meter key={kind} node={node} kind={kind}>
        {(used) => (
          <div className={`spread ${size}`}>
            <span className="muted">{words.columns[kind]}</span>
            <span className="tabular">{used}</span>
          </div>
        )}
      </Meter>
    ))}
    <span className={`muted ${size}`}>{words.vmsOn(node.vms.length, node.maxVms)}</span>
  </>
)
