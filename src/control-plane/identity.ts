// Opens the identity provider that the service trusts: the configured one, or else the built-in one.
import { createIdentity, type LoginIdentity } from '../auth/login/oidc.ts'
import { remoteKeys } from '../auth/login/provider-keys.ts'
import { createUsedTokens } from '../auth/login/used-tokens.ts'
import { LocalIssuer, localAdminGroup, localClientId, localConsoleClientId } from '../auth/provider/issuer.ts'
import { loadIssuerKeys } from '../auth/provider/issuer-keys.ts'
import { createLoginThrottle } from '../auth/provider/login-throttle.ts'
import { UserDirectory } from '../auth/provider/users.ts'
import type { Secrets } from '../auth/secrets.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Settings } from '../server/config/settings.ts'
import type { Collections } from '../store/records/collections.ts'
import { assertUsersMoved } from './data-folder.ts'

export interface IdentityPart {
  readonly identity: LoginIdentity
  /** Only without a configured provider. */
  readonly localIssuer?: LocalIssuer
  readonly localUsers?: UserDirectory
  /** Whether a user of the built-in provider still exists. */
  isCurrentUser(uid: string): boolean
}

interface IdentityInput {
  readonly dataFolder: string
  readonly settings: Settings
  readonly collections: Collections
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly apiUrl: () => string
}

export async function openIdentity(input: IdentityInput): Promise<IdentityPart> {
  const { settings, clock } = input
  const { issuer, clientId, emailClaim, groupsClaim, adminGroups } = settings.auth
  if (issuer !== undefined && clientId !== undefined) {
    const keys = remoteKeys(issuer)
    const identity = createIdentity({
      issuer: () => issuer,
      clientId,
      emailClaim,
      groupsClaim,
      adminGroups,
      keys,
      clock,
      used: createUsedTokens(input.collections.used),
    })
    return { identity, isCurrentUser: () => false }
  }
  return openLocal(input)
}

async function openLocal(input: IdentityInput): Promise<IdentityPart> {
  const { dataFolder, settings, collections, secrets, clock, log, apiUrl } = input
  const failed = (name: string, error: unknown): void =>
    log.error('a sealed record cannot be decrypted', { name }, error)
  const users = new UserDirectory(collections.users, secrets, { clock, failed })
  assertUsersMoved(dataFolder, users)
  const keys = await loadIssuerKeys(collections.issuerKeys, secrets, clock)
  const storage = { logins: collections.logins, secrets, keys, clock }
  const throttle = createLoginThrottle({ tries: collections.loginTries, hide: keys.hide, clock })
  const localIssuer = new LocalIssuer({
    apiUrl,
    pathPrefix: settings.console.pathPrefix,
    users,
    keys,
    storage,
    throttle,
    log,
  })
  const identity = createIdentity({
    issuer: () => localIssuer.issuer,
    clientId: localClientId,
    otherClientIds: [localConsoleClientId],
    emailClaim: 'email',
    groupsClaim: 'groups',
    adminGroups: [localAdminGroup],
    keys: localIssuer.keys,
    clock,
    used: createUsedTokens(collections.used),
    uidOf: (subject) => users.byAccountId(subject) && subject,
  })
  return { identity, localIssuer, localUsers: users, isCurrentUser: (uid) => users.isCurrent(uid) }
}
