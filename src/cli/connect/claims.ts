// Reads the claims of a token. Does not check the signature, which the service does with every request.

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
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    if (typeof claims !== 'object' || claims === null) return undefined
    const { sub, kind, admin, namespace, exp } = claims as Readonly<Record<string, unknown>>
    return {
      admin: admin === true,
      ...(typeof sub === 'string' && { name: sub }),
      ...(typeof kind === 'string' && { kind }),
      ...(typeof namespace === 'string' && { namespace }),
      ...(typeof exp === 'number' && { expiresAt: new Date(exp * 1_000).toISOString().replace('.000Z', 'Z') }),
    }
  } catch {
    return undefined
  }
}

/** The owner as records name it: the e-mail address of a user, or `serviceaccount:NAMESPACE:NAME`. */
export const subjectOf = ({ name, kind, namespace }: Claims): string | undefined =>
  name && kind === 'serviceaccount' ? `serviceaccount:${namespace}:${name}` : name || undefined
