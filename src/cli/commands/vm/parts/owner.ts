// Resolves `--owner me` to the subject of the caller's token, without verifying it: the service does.
import type { Context } from '../../../command.ts'
import { UsageError } from '../../../line/usage.ts'

interface Claims {
  readonly sub?: unknown
  readonly kind?: unknown
  readonly namespace?: unknown
}

export async function ownerOf(context: Context, asked: string): Promise<string> {
  if (asked !== 'me') return asked.toLowerCase()
  const { sub, kind, namespace } = claimsOf((await context.connection()).token ?? '')
  if (typeof sub === 'string' && sub !== '')
    return kind === 'serviceaccount' ? `serviceaccount:${namespace}:${sub}` : sub
  throw new UsageError('the token does not say who "me" is', 'name the owner, for example --owner ada@example.com')
}

function claimsOf(token: string): Claims {
  try {
    return (JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? {}) as Claims
  } catch {
    return {}
  }
}
