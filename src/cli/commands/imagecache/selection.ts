// Which nodes an imagecache command is about, and its outcome on each.
import type { NodeResult, NodeSelection } from '../../../api/images/image-cache.ts'
import type { Options } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import type { Column } from '../../output/output.ts'

export const imageArgument = { image: { value: 'IMAGE', description: 'name of the image', required: true } } as const

export const selectionOptions = {
  nodes: { type: 'string', value: 'NODE,…', repeatable: true, description: 'Names of nodes' },
  tags: { type: 'string', value: 'TAG,…', repeatable: true, description: 'Nodes with all of these tags' },
  all: { type: 'boolean', description: 'All nodes of the namespace' },
} as const satisfies Options

interface Selected {
  readonly nodes: readonly string[]
  readonly tags: readonly string[]
  readonly all: boolean
}

export function selectionOf({ nodes, tags, all }: Selected): NodeSelection {
  const [names, labels] = [listed(nodes), listed(tags)]
  if (names.length + labels.length === 0 && !all)
    throw new UsageError('No nodes specified', 'Use --nodes a,b or --tags t or --all')
  return { ...(names.length > 0 && { nodes: names }), ...(labels.length > 0 && { tags: labels }), ...(all && { all }) }
}

const listed = (values: readonly string[]): string[] =>
  values.flatMap((value) => value.split(',')).filter((value) => value !== '')

export const resultColumns: readonly Column<NodeResult>[] = [
  { header: 'NODE', cell: ({ node }) => node },
  { header: 'RESULT', cell: ({ result }) => result },
  { header: 'MESSAGE', cell: ({ message }) => message },
]

export const isRefused = ({ code }: NodeResult): boolean => code >= 400
