// Who may delete an object or change an image (docs/spec.md R14), and what a caller may know of other namespaces.
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

/** The owner of an image or ISO, members of the namespace in which it was made, and administrators. */
export const isOwnerOrMember = (caller: Caller, { owner, sourceNamespace }: Omit<OwnedImage, 'isProtected'>): boolean =>
  caller.name === owner || maySee(caller, sourceNamespace)

/** The rule for every change of an existing image or ISO, its deletion included. Others change a copy. */
export function reasonAgainstChangingImage(caller: Caller, image: OwnedImage): 'protected' | 'foreign' | undefined {
  if (caller.roleIn(undefined) === 'admin') return undefined
  if (image.isProtected) return 'protected'
  return isOwnerOrMember(caller, image) ? undefined : 'foreign'
}

/** Replaces the names of VMs that the caller may not see. */
export const vmsElsewhere = (count: number): string =>
  count === 1 ? '1 VM in another namespace' : `${count} VMs in other namespaces`

/** Namespaces for other workloads refuse VMs. */
export const takesVms = (namespace: { readonly customPods: boolean }): boolean => !namespace.customPods
