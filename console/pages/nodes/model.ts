// Capacity of nodes, the command that joins one, and the VMs on a node.
import type { Node } from '../../../src/api/nodes/nodes.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { oneDecimal } from '../../ui/sizes.ts'

interface Share {
  readonly used: number
  readonly whole: number
  /** For example `4.8 of 16 GiB used`. */
  readonly text: string
}

const gibi = (text: string): number => Number.parseFloat(text) || 0

const shareOf = (whole: number, free: number, unit: string): Share => ({
  used: whole - free,
  whole,
  text: `${oneDecimal(whole - free)} of ${oneDecimal(whole)}${unit} used`,
})

export const capacityOf = (node: Node): { readonly cores: Share; readonly memory: Share } => ({
  cores: shareOf(node.allocatableCpu, node.availableCpu, ''),
  memory: shareOf(gibi(node.allocatableMemory), gibi(node.availableMemory), ' GiB'),
})

/**
 * The command that a new host runs. The join string holds the addresses of the servers, their key and a secret. It is
 * piped, because arguments are visible in the process list.
 */
export const joinLine = (join: string): string => `printf %s '${join}' | svc3 agent --join-token-stdin`

interface Block {
  readonly namespace: string
  readonly name: string
  /** 1 for a VM that the user cannot see. */
  readonly cores: number
  readonly vm: Vm | undefined
}

/** The VMs of a node, largest first, and its free cores. */
export function blocksOf(
  node: Node,
  vms: readonly Vm[],
): { readonly blocks: readonly Block[]; readonly freeCores: number } {
  const known = new Map(vms.map((vm) => [`${vm.namespace}/${vm.name}`, vm]))
  const blocks = node.vms.map((full): Block => {
    const [namespace = '', name = ''] = full.split('/')
    const vm = known.get(full)
    return { namespace, name, cores: vm?.cpu ?? 1, vm }
  })
  return { blocks: blocks.toSorted((a, b) => b.cores - a.cores), freeCores: Math.max(0, node.availableCpu) }
}
