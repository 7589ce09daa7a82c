// The VMs of a node as blocks, each as wide as its share of the cores.
import { Link } from 'wouter'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import { listVms } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { count } from '../../ui/sizes.ts'
import { vmPath } from '../paths.ts'
import { memoryText, powerWords } from '../vms/model.ts'
import { blocksOf } from './model.ts'

export function Blocks({ node }: { readonly node: Node }) {
  const namespaces = [...new Set(node.vms.map((name) => name.split('/')[0] ?? ''))]
  const { items } = useLive(listVms, namespaces.length === 0 ? [node.namespace] : namespaces, `node=${node.name}`)
  const { blocks, freeCores } = blocksOf(node, items)
  return (
    <>
      <ul className="blocks" aria-label="VMs">
        {blocks.map(({ namespace, name, cores, vm }) => (
          <li key={`${namespace}/${name}`} style={{ flexGrow: cores }} data-power={vm?.powerState}>
            <Link href={vmPath({ namespace, name })} title={`${namespace}/${name}`}>
              <b>{name}</b>
              <span className="small">
                {vm
                  ? `${powerWords[vm.powerState]} · ${count(vm.cpu, 'core', 'cores')} · ${memoryText(vm.memory)}`
                  : `In ${namespace}`}
              </span>
            </Link>
          </li>
        ))}
        {freeCores > 0 && (
          <li style={{ flexGrow: freeCores }} data-free>
            <span className="small">{`${count(freeCores, 'core', 'cores')} free`}</span>
          </li>
        )}
      </ul>
      {blocks.length === 0 && <p className="muted">No VMs</p>}
    </>
  )
}
