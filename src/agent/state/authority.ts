// Decides which server has authority over a VM. A server with other data than the VM came from, or with older data, such as from
// a backup, does not know all VMs: that it does not list one is no reason to remove it.
import type { DesiredVm } from '../../api/nodes/agent.ts'

export interface Origin {
  readonly store: string
  /** The uid of this node in the cluster. It changes when the node is removed and joins again. */
  readonly node: string
  /** The highest revision of the VM's desired state. */
  readonly revision: string
}

export interface Claim {
  readonly store: string
  readonly node: string
  /** This node has seen no newer data, so VMs that are not listed were deleted. */
  readonly isNewest: boolean
  /** The data is other data than before, or older: generations start over. */
  readonly isReset: boolean
}

export const firstRevision = '0'

/** Revisions are decimal numbers of any length. */
export const compareRevisions = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

export const laterOf = (a: string, b: string): string => (compareRevisions(a, b) >= 0 ? a : b)

/** Whether a desired state is older than the known one, from the same data. */
export const isBehind = (desired: DesiredVm, known: Pick<DesiredVm, 'revision'> | undefined): boolean =>
  compareRevisions(known?.revision ?? firstRevision, desired.revision) > 0

export function originAfter(before: Origin | undefined, { store, node }: Claim, revision: string) {
  const known = before?.store === store ? before.revision : firstRevision
  return { store, node, revision: laterOf(known, revision) } satisfies Origin
}

export interface Unlisted {
  /** half-made: the folder has no record, so the VM never ran. Undefined: the record is unreadable. */
  readonly origin: Origin | 'half-made' | undefined
  /** The VM was kept when an earlier HELLO did not list it. Newer data without it does not prove a deletion. */
  readonly isKept: boolean
}

/** Why a VM stays although a HELLO does not list it; undefined if it is to be removed. */
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
