// Who may delete an object (docs/spec.md R14), and what a caller may know of other namespaces.
import { mayCall, type Role } from './permissions.ts'

/** A caller's name, as in records, and roles. */
export interface Caller {
  readonly name: string
  /** Without a namespace: the role in the whole cluster. */
  roleIn(namespace: string | undefined): Role
}

export const mayDelete = (role: Role, caller: string, owner: string): boolean =>
  role === 'admin' || (role === 'dev' && caller === owner)

/** Names in a namespace are visible to its members and administrators. */
export const maySee = ({ roleIn }: Pick<Caller, 'roleIn'>, namespace: string | undefined): boolean =>
  mayCall(roleIn(namespace), 'dev')

interface OwnedImage {
  readonly owner: string
  /** The namespace in which the image was made. Unknown for old images and those that came with svc3. */
  readonly sourceNamespace?: string | undefined
  readonly isProtected: boolean
}

/** The owner, members of the namespace in which the image was made, and administrators may delete it. */
export function reasonAgainstDeletingImage(caller: Caller, image: OwnedImage): 'protected' | 'foreign' | undefined {
  if (caller.roleIn(undefined) === 'admin') return undefined
  if (image.isProtected) return 'protected'
  return caller.name === image.owner || maySee(caller, image.sourceNamespace) ? undefined : 'foreign'
}

/** Any user of a VM may commit to its image, unless the image is protected. */
export const mayCommitTo = ({ roleIn }: Pick<Caller, 'roleIn'>, { isProtected }: Pick<OwnedImage, 'isProtected'>) =>
  !isProtected || roleIn(undefined) === 'admin'

/** Replaces the names of VMs that the caller may not see. */
export const vmsElsewhere = (count: number): string =>
  count === 1 ? '1 VM in another namespace' : `${count} VMs in other namespaces`

/** Namespaces for other workloads refuse VMs. */
export const takesVms = (namespace: { readonly customPods: boolean }): boolean => !namespace.customPods
