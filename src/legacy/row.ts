// A row of the mapping: one line of docs/spec.md R50, with the operations that replace its calls.
import type { Operation } from '../api/operation.ts'

export type LegacyMethod = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** The fields of an operation that the mapping uses. */
export type Replacement = Pick<Operation, 'id' | 'method' | 'path' | 'summary' | 'example'>

export interface LegacyCall {
  readonly method: LegacyMethod
  /** With parameters in braces. */
  readonly path: string
}

/** replaced: by operations. removed: without a replacement. no-endpoint: only a command replaces it. */
type Fate = 'replaced' | 'removed' | 'no-endpoint'

export interface LegacyRow {
  /** The heading of the row in docs/spec.md R50. */
  readonly group: string
  /** Identifies the row in docs/reference/orka-2.4.md and in answers. */
  readonly anchor: string
  readonly calls: readonly LegacyCall[]
  /** Calls that docs/spec.md R50 does not list, but that clients send. */
  readonly variants: readonly LegacyCall[]
  readonly fate: Fate
  readonly operations: readonly Replacement[]
  /** Commands that do the same. */
  readonly commands: readonly string[]
  /** What to do instead. */
  readonly advice: string
  /** Example bodies of `operations`, in the same order, where the operation's own example does not fit. */
  readonly bodies: readonly unknown[]
  /** How the gateway still answers a call that docs/spec.md R50 removes; undefined if it refuses the call. */
  readonly kept: string | undefined
}

export const anchorOf = ({ method, path }: LegacyCall): string =>
  `${method} ${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
