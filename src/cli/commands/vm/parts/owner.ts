// Resolves --owner: "me" is the subject of the caller's token, and a name without a domain matches addresses that begin
// with it.
import type { Context } from '../../../command.ts'
import { claimsOf, subjectOf } from '../../../connect/claims.ts'
import { UsageError } from '../../../line/usage.ts'

/** Returns a full owner, or a part for `isOwnedBy`. */
export async function ownerFromOption(context: Context, text: string): Promise<string> {
  if (text !== 'me') return text.toLowerCase()
  const claims = claimsOf((await context.connection()).token ?? '')
  const subject = claims && subjectOf(claims)
  if (subject !== undefined) return subject
  throw new UsageError('The token does not say who "me" is', 'Name the owner, for example --owner ada@example.com')
}

/** Whether the service can select by this owner. */
export const isFullOwner = (owner: string): boolean => /[@:]/.test(owner)

/** `ada` matches ada@example.com and service accounts named ada. */
export const isOwnedBy = (owner: string, wanted: string): boolean =>
  owner === wanted || owner.startsWith(`${wanted}@`) || owner.endsWith(`:${wanted}`)
