// Who may delete what somebody made (docs/spec.md R14): developers their own, administrators everything. And what a caller
// may know of namespaces that are not theirs.
import { mayCall, type Role } from './permissions.ts'

/** Somebody, by the name that records have of them, and what they are in each namespace. */
export interface Caller {
  readonly name: string
  /** Without a namespace: in the cluster. */
  roleIn(namespace: string | undefined): Role
}

export const mayDelete = (role: Role, caller: string, owner: string): boolean =>
  role === 'admin' || (role === 'dev' && caller === owner)

/** Names in a namespace are for its people and for administrators. */
export const maySee = ({ roleIn }: Pick<Caller, 'roleIn'>, namespace: string | undefined): boolean =>
  mayCall(roleIn(namespace), 'dev')

/** The facts about an image that decide who may change it. */
interface OwnedImage {
  readonly owner: string
  /** Where it was made; unknown of old ones, and of those that came with svc3. */
  readonly sourceNamespace?: string | undefined
  readonly isProtected: boolean
}

/** Deleting is for its owner, people of the namespace it was made in, and administrators. */
export function reasonAgainstDeletingImage(caller: Caller, image: OwnedImage): 'protected' | 'foreign' | undefined {
  if (caller.roleIn(undefined) === 'admin') return undefined
  if (image.isProtected) return 'protected'
  return caller.name === image.owner || maySee(caller, image.sourceNamespace) ? undefined : 'foreign'
}

/** Whoever has a VM commits it to its image, unless that is protected. */
export const mayCommitTo = ({ roleIn }: Pick<Caller, 'roleIn'>, { isProtected }: Pick<OwnedImage, 'isProtected'>) =>
  !isProtected || roleIn(undefined) === 'admin'

/** What callers read in place of the names of VMs that they may not know. */
export const vmsElsewhere = (count: number): string =>
  count === 1 ? '1 VM in another namespace' : `${count} VMs in other namespaces`

/** A namespace kept for other workloads refuses VMs. */
export const takesVms = (namespace: { readonly customPods: boolean }): boolean => !namespace.customPods
