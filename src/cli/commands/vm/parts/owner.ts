// Who `--owner` means: "me" is the subject of the caller's token, read without verifying it (the service does); a name
// without a domain is anybody whose address begins with it.
import type { Context } from '../../../command.ts'
import { claimsOf, subjectOf } from '../../../connect/claims.ts'
import { UsageError } from '../../../line/usage.ts'

/** In full, as records have it; or a part that `isOwnedBy` finds. */
export async function ownerFromOption(context: Context, asked: string): Promise<string> {
  if (asked !== 'me') return asked.toLowerCase()
  const claims = claimsOf((await context.connection()).token ?? '')
  const subject = claims && subjectOf(claims)
  if (subject !== undefined) return subject
  throw new UsageError('The token does not say who "me" is', 'Name the owner, for example --owner ada@example.com')
}

/** Whether the service can select by it. */
export const isFullOwner = (owner: string): boolean => /[@:]/.test(owner)

/** `ada` is ada@example.com, and the service account of that name. */
export const isOwnedBy = (owner: string, wanted: string): boolean =>
  owner === wanted || owner.startsWith(`${wanted}@`) || owner.endsWith(`:${wanted}`)
