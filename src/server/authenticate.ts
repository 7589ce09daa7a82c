// Who calls, and may they? Before the body is read. One message for every bad token, and for what somebody may not use
// the same answer whether it exists or not.
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { ApiError } from '../api/errors.ts'
import type { Operation } from '../api/operation.ts'
import type { Principal } from '../auth/principal.ts'
import { realNamespace } from '../rules/names.ts'
import { mayCall } from '../rules/permissions.ts'
import type { Services } from './services.ts'

export const unauthorized = (): ApiError =>
  new ApiError('Unauthorized', 'Unauthorized: the request carries no valid token', {
    hint: 'send "Authorization: Bearer TOKEN"; svc3 user get-token prints one',
  })

export const forbidden = (operation: Operation, namespace: string | undefined): ApiError =>
  new ApiError(
    'Forbidden',
    `Forbidden: you may not ${operation.summary.charAt(0).toLowerCase()}${operation.summary.slice(1)}`,
    {
      kind: operation.noun,
      hint:
        operation.allow === 'admin'
          ? 'only cluster administrators may'
          : `an administrator can let you into the namespace "${namespace ?? ''}"`,
    },
  )

export function bearer(request: FastifyRequest): string | undefined {
  const header = request.headers.authorization
  return header !== undefined && /^bearer /i.test(header) ? header.slice(7).trim() : undefined
}

/** The same question again, later, for an answer that lasts. A store that cannot tell counts as no. */
export async function mayStill(
  operation: Operation,
  request: FastifyRequest,
  { tokens, roles }: Services,
): Promise<boolean> {
  if (operation.allow === 'anyone') return true
  const principal = await tokens.verify(bearer(request) ?? '').catch(() => undefined)
  return principal !== undefined && mayCall(roles.roleOf(principal, request.namespace || undefined), operation.allow)
}

/** Probes are never refused: an orchestrator would take the service for dead. */
const unlimited = new Set(['getHealth', 'getReadiness'])

export function guard(operation: Operation, { tokens, roles, settings, limits }: Services): onRequestHookHandler {
  const judge = (request: FastifyRequest, principal: Principal | undefined): ApiError | undefined => {
    const named = (request.params as { namespace?: string }).namespace
    const namespace = named === undefined ? undefined : realNamespace(named, settings.compat.namespaceAliases)
    request.namespace = namespace ?? ''
    request.principal = principal
    const spent = unlimited.has(operation.id) ? undefined : limits.charge(request, principal, operation.id)
    if (spent) return spent
    if (!principal) return operation.allow === 'anyone' ? undefined : unauthorized()
    return mayCall(roles.roleOf(principal, namespace), operation.allow) ? undefined : forbidden(operation, namespace)
  }

  // Without promises on the way of a known token: this runs for every request.
  return (request, _reply, done) => {
    const token = bearer(request)
    const known = token === undefined ? undefined : tokens.known(token)
    if (known || token === undefined || operation.allow === 'anyone') return done(judge(request, known))
    tokens.verify(token).then(
      (principal) => done(judge(request, principal)),
      (error: Error) => done(error),
    )
  }
}
