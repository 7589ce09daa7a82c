// The administrator as whom programs on the server's own machine log in: those of `svc3 dev`, and of operators,
// for whom `svc3 server token` creates a token without a browser.
import { randomBytes } from 'node:crypto'
import type { User } from '../auth/principal.ts'
import { accountIdOf, type UserDirectory } from '../auth/provider/users.ts'
import type { Tokens } from '../auth/tokens.ts'
import { defaultNamespace, userNameOf } from '../rules/names.ts'
import type { Collections } from '../store/records/collections.ts'
import { newEvent } from '../store/records/events.ts'
import { OperatorError } from './data-folder.ts'

export const administrator = 'admin@localhost'

/** With an external identity provider, there are no users here, and the owner of this machine is the administrator. */
export function userOf(users: UserDirectory | undefined, name = administrator): User | undefined {
  if (!users) return { kind: 'user', name, admin: true }
  const user = users.list().find(({ email }) => email === name)
  return user && { kind: 'user', name: user.email, admin: user.admin, uid: accountIdOf(user) }
}

/** Creates the first user with a random password, which must be reset to log in on the login page. */
export async function ensureAdministrator(users: UserDirectory | undefined): Promise<void> {
  if (!users || users.list().length > 0) return
  await users.add(administrator, { admin: true, password: randomBytes(24).toString('base64url') })
}

/** Creates a token for an administrator, by default the oldest, and records that as an event. */
export async function administratorToken(
  events: Collections['events'],
  tokens: Tokens,
  users: UserDirectory | undefined,
  email: string | undefined,
) {
  if (email === undefined) await ensureAdministrator(users)
  const oldest = users?.list().find(({ admin }) => admin)?.email
  const user = userOf(users, email === undefined ? oldest : (userNameOf(email) ?? ''))
  if (!user?.admin || user.name === '')
    throw new OperatorError(`User ${email ?? administrator} is not an administrator`)
  const { token } = await tokens.issue(user)
  const event = newEvent(new Date(), {
    type: 'Normal',
    reason: 'CreateAdministratorToken',
    message: `A token for ${user.name} was created on the machine of the server`,
    involved: { kind: 'users', name: user.name },
    actor: 'system',
    requestId: '',
    outcome: 'Succeeded',
    audience: 'admin',
  })
  await events.create(defaultNamespace, event.name, event)
  return { users: [], token }
}
