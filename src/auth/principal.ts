// The caller of a request, from its token.

export interface User {
  readonly kind: 'user'
  /** The email address in lower case. */
  readonly name: string
  readonly admin: boolean
  /** Set for users of the built-in provider, whose tokens end when the user is deleted. */
  readonly uid?: string
}

interface ServiceAccountPrincipal {
  readonly kind: 'serviceaccount'
  readonly name: string
  readonly namespace: string
  readonly uid: string
}

/** The agent of a node, which may change the records of that node only. */
export interface AgentPrincipal {
  readonly kind: 'agent'
  /** The name of the node. */
  readonly name: string
  readonly uid: string
}

/** Another server of the cluster. */
export interface ServerPrincipal {
  readonly kind: 'server'
  /** The id of the server. */
  readonly name: string
  /** The id of its process. */
  readonly uid: string
}

export type Principal = User | ServiceAccountPrincipal | AgentPrincipal | ServerPrincipal

/** The name of a caller in records (`updatedBy`, `owner`) and in the log. */
export const displayName = (principal: Principal): string => names[principal.kind](principal as never)

const names: { readonly [Kind in Principal['kind']]: (principal: Extract<Principal, { kind: Kind }>) => string } = {
  user: ({ name }) => name,
  serviceaccount: ({ namespace, name }) => `serviceaccount:${namespace}:${name}`,
  agent: ({ name }) => `agent:${name}`,
  server: ({ name }) => `server:${name}`,
}

/**
 * Identifies a caller for rate limits, idempotency keys and uploads. Keys of different kinds never collide, and a service
 * account that is created again has another key.
 */
export const callerKey = (principal: Principal): string => {
  const key = `${principal.kind} ${displayName(principal)}`
  return principal.kind === 'serviceaccount' ? `${key} ${principal.uid}` : key
}
