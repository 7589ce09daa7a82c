// Who may call what: a pure table from role and operation to yes or no. Who somebody is, `auth/` finds out.
import type { Allow } from '../api/operation.ts'

/** What a caller is in the namespace of a request. */
export type Role = 'admin' | 'dev' | 'none' | 'agent' | 'server'

const allowed: Readonly<Record<Allow, readonly Role[]>> = {
  anyone: ['admin', 'dev', 'none', 'agent', 'server'],
  user: ['admin', 'dev', 'none'],
  dev: ['admin', 'dev'],
  admin: ['admin'],
  agent: ['agent'],
  server: ['server'],
}

export const mayCall = (role: Role, allow: Allow): boolean => allowed[allow].includes(role)
