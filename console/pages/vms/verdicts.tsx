// Which nodes can take a VM, and why the others cannot: folded, below the summary.
import type { Vm } from '../../../src/api/vms/vms.ts'

export const Verdicts = ({ nodes }: { readonly nodes: NonNullable<Vm['nodes']> }) => (
  <details className="more small">
    <summary>All nodes</summary>
    <ul>
      {nodes.map(({ name, fits, reason }) => (
        <li key={name}>{`${fits ? '✓' : '–'} ${name}: ${reason}`}</li>
      ))}
    </ul>
  </details>
)
