// Who is calling: what a valid token says about its bearer.

export interface User {
  readonly kind: 'user'
  /** The e-mail address, in lower case. */
  readonly name: string
  readonly admin: boolean
  /** Set for users of the built-in provider: a token dies with its user. */
  readonly uid?: string
}

interface ServiceAccountPrincipal {
  readonly kind: 'serviceaccount'
  readonly name: string
  readonly namespace: string
  readonly uid: string
}

/** The agent of a node: it may touch the records of that node only. */
export interface AgentPrincipal {
  readonly kind: 'agent'
  /** The node's. */
  readonly name: string
  readonly uid: string
}

/** Another server of the cluster. */
export interface ServerPrincipal {
  readonly kind: 'server'
  /** Its id. */
  readonly name: string
  /** Of its process. */
  readonly uid: string
}

export type Principal = User | ServiceAccountPrincipal | AgentPrincipal | ServerPrincipal

/** How a caller stands in records (`updatedBy`, `owner`) and in the log. */
export const displayName = (principal: Principal): string => names[principal.kind](principal as never)

const names: { readonly [Kind in Principal['kind']]: (principal: Extract<Principal, { kind: Kind }>) => string } = {
  user: ({ name }) => name,
  serviceaccount: ({ namespace, name }) => `serviceaccount:${namespace}:${name}`,
  agent: ({ name }) => `agent:${name}`,
  server: ({ name }) => `server:${name}`,
}

/**
 * Tells callers apart where it matters (budgets, idempotency keys, uploads): names of different kinds never meet, and a
 * service account made again under the same name has nothing of the one before.
 */
export const callerKey = (principal: Principal): string => {
  const key = `${principal.kind} ${displayName(principal)}`
  return principal.kind === 'serviceaccount' ? `${key} ${principal.uid}` : key
}
