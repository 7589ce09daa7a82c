// What a token says about its bearer. Read without checking the signature: the service does that with every request.

interface Claims {
  readonly name?: string
  readonly kind?: string
  readonly admin: boolean
  /** Of a service account. */
  readonly namespace?: string
  readonly expiresAt?: string
}

/** Nothing for a token that is not one of the service's. */
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

/** As records name their owner: the address of a user, `serviceaccount:NAMESPACE:NAME`. */
export const subjectOf = ({ name, kind, namespace }: Claims): string | undefined =>
  name && kind === 'serviceaccount' ? `serviceaccount:${namespace}:${name}` : name || undefined
