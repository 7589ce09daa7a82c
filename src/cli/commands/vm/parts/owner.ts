// Who `--owner` means: "me" is the subject of the caller's token, read without verifying it (the service does); a name
// without a domain is anybody whose address begins with it.
import type { Context } from '../../../command.ts'
import { UsageError } from '../../../line/usage.ts'

interface Claims {
  readonly sub?: unknown
  readonly kind?: unknown
  readonly namespace?: unknown
}

/** In full, as records have it; or a part that `isOwnedBy` finds. */
export async function ownerOf(context: Context, asked: string): Promise<string> {
  if (asked !== 'me') return asked.toLowerCase()
  const { sub, kind, namespace } = claimsOf((await context.connection()).token ?? '')
  if (typeof sub === 'string' && sub !== '')
    return kind === 'serviceaccount' ? `serviceaccount:${namespace}:${sub}` : sub
  throw new UsageError('The token does not say who "me" is', 'Name the owner, for example --owner ada@example.com')
}

/** Whether the service can select by it. */
export const isWhole = (owner: string): boolean => /[@:]/.test(owner)

/** `ada` is ada@example.com, and the service account of that name. */
export const isOwnedBy = (owner: string, wanted: string): boolean =>
  owner === wanted || owner.startsWith(`${wanted}@`) || owner.endsWith(`:${wanted}`)

function claimsOf(token: string): Claims {
  try {
    return (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}) as Claims
  } catch {
    return {}
  }
}
