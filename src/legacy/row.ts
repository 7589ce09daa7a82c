// What a row of the mapping is: one line of docs/spec.md R50, with values of the operation table as
// its replacements.
import type { Operation } from '../api/operation.ts'

export const groups = [
  'Users, tokens, access',
  'VMs and VM configurations',
  'Nodes',
  'Images',
  'ISOs',
  'Certificates and other',
] as const
export type Group = (typeof groups)[number]

export type LegacyMethod = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** What of an operation the mapping tells. */
export type Replacement = Pick<Operation, 'id' | 'method' | 'path' | 'summary' | 'example'>

export interface LegacyCall {
  readonly method: LegacyMethod
  /** Parameters in braces, as in the operation table. */
  readonly path: string
}

/**
 * replaced: there is something in 3.0 for it. removed: there is nothing. no-endpoint: only the command line has it.
 */
type Fate = 'replaced' | 'removed' | 'no-endpoint'

export interface LegacyRow {
  readonly group: Group
  /** Names the row in docs/reference/orka-2.4.md and in answers. */
  readonly anchor: string
  readonly calls: readonly LegacyCall[]
  /** What clients send beside these, which docs/spec.md R50 does not name: the same row answers. */
  readonly variants: readonly LegacyCall[]
  readonly fate: Fate
  /** As docs/spec.md R50 names them. */
  readonly operations: readonly Replacement[]
  /** Lines of the command line that do it. */
  readonly commands: readonly string[]
  /** What to do instead, in the sense of docs/spec.md R50. */
  readonly advice: string
  /** Bodies for the replacements that tell more than their own examples, in the order of `operations`. */
  readonly bodies: readonly unknown[]
  /** docs/spec.md R50 removes it, the gateway answers it all the same: why. */
  readonly kept: string | undefined
}

export const anchorOf = ({ method, path }: LegacyCall): string =>
  `${method} ${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
