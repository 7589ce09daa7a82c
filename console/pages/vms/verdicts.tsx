// Which nodes can take a VM, and why the others cannot: folded, below the summary.
import type { Vm } from '../../../src/api/vms/vms.ts'
import { deployTexts as words } from './late-texts.ts'

export const Verdicts = ({ nodes }: { readonly nodes: NonNullable<Vm['nodes']> }) => (
  <details className="more small">
    <summary>{words.perNode}</summary>
    <ul>
      {nodes.map(({ name, fits, reason }) => (
        <li key={name}>{words.perNodeLine(fits, name, reason)}</li>
      ))}
    </ul>
  </details>
)
