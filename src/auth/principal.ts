// Who is calling: what a valid token says about its bearer.

export interface User {
  readonly kind: 'user'
  readonly name: string
  readonly admin: boolean
}

export type Principal = User

/** How a caller stands in records (`updatedBy`, `owner`) and in the log. */
export const displayName = (principal: Principal): string => principal.name

/** Tells callers apart where it matters (budgets, idempotency keys): names of different kinds never meet. */
export const callerKey = (principal: Principal): string => `${principal.kind} ${displayName(principal)}`
