// Who is calling: what a valid token says about its bearer.

export interface User {
  readonly kind: 'user'
  /** The e-mail address, in lower case. */
  readonly name: string
  readonly admin: boolean
  /** Set for users of the built-in provider: a token dies with its user. */
  readonly uid?: string
}

export interface ServiceAccountPrincipal {
  readonly kind: 'serviceaccount'
  readonly name: string
  readonly namespace: string
  readonly uid: string
}

export type Principal = User | ServiceAccountPrincipal

/** How a caller stands in records (`updatedBy`, `owner`) and in the log. */
export const displayName = (principal: Principal): string =>
  principal.kind === 'user' ? principal.name : `serviceaccount:${principal.namespace}:${principal.name}`

/** Tells callers apart where it matters (budgets, idempotency keys): names of different kinds never meet. */
export const callerKey = (principal: Principal): string => `${principal.kind} ${displayName(principal)}`
