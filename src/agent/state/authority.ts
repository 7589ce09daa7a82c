// Which server has authority over a VM. A server speaks for its data, which only go forward. One with other data, or with older
// ones out of a backup, does not know VMs that are in best health: that it does not list them means nothing.
import type { DesiredVm } from '../../api/nodes/agent.ts'

/** Where the desired state of a VM came from. */
export interface Origin {
  /** The uid of the server's data. */
  readonly store: string
  /** The uid of this node, which it gets anew when it joins after it was removed. */
  readonly node: string
  /** The highest revision of its desired state. */
  readonly revision: string
}

/** What a HELLO is worth. */
export interface Claim {
  readonly store: string
  readonly node: string
  /** This node has seen nothing newer: what is not in there was deleted. */
  readonly isNewest: boolean
  /** Other data than the last ones, or older: what it says counts, whatever the generation. */
  readonly isAnew: boolean
}

export const firstRevision = '0'

/** Revisions are decimal numbers of any length. */
export const compareRevisions = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

export const laterOf = (a: string, b: string): string => (compareRevisions(a, b) >= 0 ? a : b)

/** Older than another one of the same data. */
export const isBehind = (desired: DesiredVm, known: Pick<DesiredVm, 'revision'> | undefined): boolean =>
  compareRevisions(known?.revision ?? firstRevision, desired.revision) > 0

export function originAfter(before: Origin | undefined, { store, node }: Claim, revision: string) {
  const known = before?.store === store ? before.revision : firstRevision
  return { store, node, revision: laterOf(known, revision) } satisfies Origin
}

export interface Unlisted {
  /** half-made: it never ran, and nothing is known of it. Missing: something is there, and nothing is known of it. */
  readonly origin: Origin | 'half-made' | undefined
  /** Some HELLO before was no reason to remove it: then none is, for the lists of data that went on without it do not help. */
  readonly isKept: boolean
}

/** Why a VM that is not in a HELLO stays all the same; undefined when it goes. */
export function whyKept({ origin, isKept }: Unlisted, claim: Claim): string | undefined {
  if (isKept) return 'it was kept before, when the server had other or older data'
  if (origin === undefined) return 'nothing on this node says which cluster it belongs to'
  if (origin !== 'half-made' && origin.store !== claim.store)
    return 'it belongs to another cluster, or to data that the server no longer has'
  if (origin !== 'half-made' && origin.node !== claim.node)
    return 'it belongs to the node that this host was before it joined again'
  if (!claim.isNewest) return "the server's data is older than what this node has seen, as after restoring a backup"
  return undefined
}
