// Who may delete what somebody made (docs/spec.md R14): developers their own, administrators everything.
import type { Role } from './permissions.ts'

export const mayDelete = (role: Role, caller: string, owner: string): boolean =>
  role === 'admin' || (role === 'dev' && caller === owner)

/** A namespace kept for other workloads refuses VMs. */
export const takesVms = (namespace: { readonly customPods: boolean }): boolean => !namespace.customPods
