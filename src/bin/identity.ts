// Which identity provider the service trusts: the organisation's own when one is configured, otherwise the built-in one.
import { loadIssuerKeys } from '../auth/issuer-keys.ts'
import { createLocalIssuer, type LocalIssuer, localAdminGroup, localClientId } from '../auth/local-issuer.ts'
import { LocalUsers } from '../auth/local-users.ts'
import { createIdentity, type Identity } from '../auth/oidc.ts'
import { remoteKeys } from '../auth/provider-keys.ts'
import type { Secrets } from '../auth/secrets.ts'
import { storedThrottle } from '../auth/stored-throttle.ts'
import { storedUsedTokens } from '../auth/used-tokens.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Settings } from '../server/settings.ts'
import type { Collections } from '../store/collections.ts'

export interface IdentityPart {
  readonly identity: Identity
  /** Only without a configured provider. */
  readonly localIssuer?: LocalIssuer
  readonly localUsers?: LocalUsers
  /** Of users of the built-in provider: whether they are still there. */
  isCurrentUser(uid: string): boolean
}

export interface IdentityInput {
  readonly dataFolder: string
  readonly settings: Settings
  readonly collections: Collections
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  /** Known once the service listens. */
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
      used: storedUsedTokens(input.collections.used),
    })
    return { identity, isCurrentUser: () => false }
  }
  return openLocal(input)
}

async function openLocal(input: IdentityInput): Promise<IdentityPart> {
  const { dataFolder, collections, secrets, clock, log, apiUrl } = input
  const users = new LocalUsers(dataFolder, clock)
  users.list()
  const keys = await loadIssuerKeys(collections.issuerKeys, secrets, clock)
  const storage = { logins: collections.logins, secrets, keys, clock }
  const throttle = storedThrottle({ tries: collections.loginTries, hide: keys.hide, clock })
  const localIssuer = createLocalIssuer({ apiUrl, users, keys, storage, throttle, log })
  const identity = createIdentity({
    issuer: () => localIssuer.issuer,
    clientId: localClientId,
    emailClaim: 'email',
    groupsClaim: 'groups',
    adminGroups: [localAdminGroup],
    keys: localIssuer.keys,
    clock,
    used: storedUsedTokens(collections.used),
    uidOf: (subject) => users.byAccountId(subject) && subject,
  })
  return { identity, localIssuer, localUsers: users, isCurrentUser: (uid) => users.isCurrent(uid) }
}
