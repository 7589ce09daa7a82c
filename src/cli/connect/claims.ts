// Reads the claims of a token. Does not check the signature, which the service does with every request.
import { isObject, parseJson } from '../../api/json.ts'

interface Claims {
  readonly name?: string
  readonly kind?: string
  readonly admin: boolean
  /** Present for service accounts. */
  readonly namespace?: string
  readonly expiresAt?: string
}

/** Returns undefined for a token that is not a JWT. */
export function claimsOf(token: string): Claims | undefined {
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  if (!isObject(claims)) return undefined
  const { sub, kind, admin, namespace, exp } = claims
  const expiry = new Date(typeof exp === 'number' ? exp * 1_000 : Number.NaN)
  return {
    admin: admin === true,
    ...(typeof sub === 'string' && { name: sub }),
    ...(typeof kind === 'string' && { kind }),
    ...(typeof namespace === 'string' && { namespace }),
    ...(!Number.isNaN(expiry.getTime()) && { expiresAt: expiry.toISOString().replace('.000Z', 'Z') }),
  }
}

/** The owner as records name it: the e-mail address of a user, or `serviceaccount:NAMESPACE:NAME`. */
export const subjectOf = ({ name, kind, namespace }: Claims): string | undefined =>
  name && kind === 'serviceaccount' ? `serviceaccount:${namespace}:${name}` : name || undefined
