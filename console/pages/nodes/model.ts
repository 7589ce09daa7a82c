// What the pages of nodes work out without being drawn: capacity, and how a host joins.
import type { Node } from '../../../src/api/nodes/nodes.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { oneDecimal } from '../../ui/sizes.ts'

interface Share {
  readonly used: number
  readonly whole: number
  readonly text: readonly [used: string, whole: string]
}

/** `11.20G` → 11.2 */
const gibi = (text: string): number => Number.parseFloat(text) || 0

export function capacityOf(node: Node): { readonly cores: Share; readonly memory: Share } {
  const cores = node.allocatableCpu - node.availableCpu
  const [whole, free] = [gibi(node.allocatableMemory), gibi(node.availableMemory)]
  return {
    cores: { used: cores, whole: node.allocatableCpu, text: [String(cores), String(node.allocatableCpu)] },
    memory: { used: whole - free, whole, text: [oneDecimal(whole - free), oneDecimal(whole)] },
  }
}

/**
 * The line with which a host joins: one string has the addresses of the servers, the key they are known by, and a secret.
 * It goes through a pipe, because the arguments of a command are seen in the list of processes.
 */
export const joinLine = (join: string): string => `printf %s '${join}' | svc3 agent --join-token-stdin`

interface Block {
  readonly namespace: string
  readonly name: string
  /** How wide; 1 where the VM is not seen. */
  readonly cores: number
  readonly vm: Vm | undefined
}

/** The VMs of a node, the largest first, and the cores that nobody has. */
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
