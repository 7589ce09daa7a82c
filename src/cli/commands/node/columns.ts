// The table columns of nodes.
import type { Node } from '../../../api/nodes/nodes.ts'
import { type Column, sizeCell } from '../../output/output.ts'

export const columns: readonly Column<Node>[] = [
  { header: 'NAME', keep: 'always', cell: (node) => node.name },
  { header: 'AVAILABLE-CPU', cell: (node) => node.availableCpu },
  { header: 'AVAILABLE-MEMORY', cell: (node) => sizeCell(node.availableMemory) },
  { header: 'STATUS', keep: 'always', cell: (node) => (node.cordoned ? `${node.phase},CORDONED` : node.phase) },
  { header: 'ARCHITECTURE', terminal: 'room', cell: (node) => node.architecture },
  { header: 'VMS', terminal: 'room', cell: (node) => node.vms.length },
  { header: 'TAGS', terminal: 'room', cell: (node) => node.orkaTags.join(',') || undefined },
  { header: 'IP', wide: true, keep: 'whole', cell: (node) => node.nodeIP },
  { header: 'ALLOCATABLE-CPU', wide: true, cell: (node) => node.allocatableCpu },
  { header: 'ALLOCATABLE-MEMORY', wide: true, cell: (node) => sizeCell(node.allocatableMemory) },
  { header: 'VERSION', wide: true, cell: (node) => node.version },
  { header: 'OS', wide: true, cell: (node) => node.os },
  { header: 'ARCHITECTURE', wide: true, cell: (node) => node.architecture },
  { header: 'TAGS', wide: true, cell: (node) => node.orkaTags.join(',') || undefined },
  { header: 'RUNTIME', wide: true, cell: (node) => node.driver || undefined },
]
