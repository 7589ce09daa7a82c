// Which role may call which operation.
import type { Allow, Operation } from '../api/operation.ts'

export type Restricted = Pick<Operation, 'allow' | 'accounts'>

/** The caller's role in the namespace of the request. */
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
