// The state of a node and its used capacity.
import type { ReactNode } from 'react'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import { count } from '../../ui/sizes.ts'
import { Bar, State, type Tone } from '../../ui/state.tsx'
import { capacityOf } from './model.ts'

const titles = { cores: 'Cores', memory: 'Memory' }

const stateOf = ({ phase, cordoned }: Node): readonly [tone: Tone, word: string] => {
  if (phase !== 'READY') return ['bad', 'Not ready']
  return cordoned ? ['warn', 'Cordoned'] : ['good', 'Ready']
}

export const stateWord = (node: Node): string => stateOf(node)[1]

export function NodeState({ node }: { readonly node: Node }) {
  const [tone, word] = stateOf(node)
  return <State tone={tone} word={word} />
}

interface MeterProps {
  readonly node: Node
  readonly kind: keyof typeof titles
  readonly children: (used: string) => ReactNode
}

export function Meter({ node, kind, children }: MeterProps) {
  const { used, whole, text } = capacityOf(node)[kind]
  return (
    <div className="measure">
      {children(text)}
      <Bar role="meter" label={`${node.name}: ${titles[kind]}`} value={used} of={whole} text={text} />
    </div>
  )
}

export const NodeCapacity = ({ node, size = '' }: { readonly node: Node; readonly size?: '' | 'small' }) => (
  <>
    {(['cores', 'memory'] as const).map((kind) => (
      <Meter key={kind} node={node} kind={kind}>
        {(used) => (
          <div className={`spread ${size}`}>
            <span className="muted">{titles[kind]}</span>
            <span className="tabular">{used}</span>
          </div>
        )}
      </Meter>
    ))}
    <span className={`muted ${size}`}>
      {node.maxVms === undefined ? count(node.vms.length, 'VM', 'VMs') : `${node.vms.length} of ${node.maxVms} VMs`}
    </span>
  </>
)
