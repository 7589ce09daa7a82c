// Handlers of service accounts. Tokens of an account are signed with its uid and not stored.
import { randomUUID } from 'node:crypto'
import type * as api from '../../../api/access/service-accounts.ts'
import type { ServiceAccount } from '../../../api/access/service-accounts.ts'
import { ApiError, alreadyExists, invalid, invalidField, success } from '../../../api/errors.ts'
import type { Roles } from '../../../auth/roles.ts'
import { serviceAccountTokenSeconds, type Tokens } from '../../../auth/tokens.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { isServiceAccountName } from '../../../rules/names.ts'
import type { Collections, ServiceAccountRecord } from '../../../store/records/collections.ts'
import type { Entry } from '../../../store/store.ts'
import { existingIn } from '../../gate/existing.ts'
import { createOnce } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'serviceaccounts'
const onlyPeople = { kind, hint: 'Ask a cluster administrator' }
const maxSeconds = 100 * serviceAccountTokenSeconds

interface ServiceAccountServices {
  readonly collections: Collections
  readonly tokens: Tokens
  readonly roles: Roles
}

export function serviceAccounts(services: ServiceAccountServices): HandlersOf<typeof api> {
  const { collections, tokens, roles } = services
  const accounts = collections.serviceAccounts
  const accountView = ({ value, rev }: Entry<ServiceAccountRecord>): ServiceAccount => {
    const { name, namespace, uid, createdAt, role = 'developer', allow } = value
    return { name, namespace, uid, createdAt, role, ...(allow && { allow: [...allow] }), resourceVersion: rev }
  }
  const existing = existingIn(accounts, kind)

  return {
    listServiceAccounts: ({ params }) => listing(accounts, params.namespace, accountView),

    async createServiceAccount({ params: { namespace, serviceaccount: name }, now, requestKey }) {
      if (!isServiceAccountName(name)) throw badName(name)
      const record: ServiceAccountRecord = {
        name,
        namespace,
        uid: randomUUID(),
        createdAt: timestamp(now),
        ...(requestKey !== undefined && { requestKey }),
      }
      const nameTaken = () =>
        alreadyExists(kind, name, { namespace, hint: 'Use it, or delete it first to revoke its tokens' })
      return accountView(await createOnce(services, namespace, accounts, record, nameTaken))
    },

    async setServiceAccountRole({ params: { namespace, serviceaccount: name }, body: { role, allow } }) {
      const isAdministrator = role === 'administrator'
      if (allow && !isAdministrator)
        throw invalid(kind, [invalidField('allow', 'Only an administrator has such rights')], 'Omit allow')
      const changed = await accounts.change(accounts.key(namespace, name), () => {
        const { role: _, allow: __, ...account } = existing(namespace, name).value
        return { ...account, ...(isAdministrator && { role, ...(allow && { allow }) }) }
      })
      return accountView(changed)
    },

    async deleteServiceAccount({ params: { namespace, serviceaccount: name } }) {
      await accounts.change(accounts.key(namespace, name), () => {
        existing(namespace, name)
        return null
      })
      return success(`Service account ${name} deleted from ${namespace}`, { kind, name })
    },

    async createServiceAccountToken({ params: { namespace, serviceaccount: name }, body, principal }) {
      const { uid } = existing(namespace, name).value
      const account = { kind: 'serviceaccount', name, namespace, uid } as const
      // Otherwise an account could keep its role after its tokens are revoked, or get rights that only another has.
      if (principal.kind === 'serviceaccount' && roles.roleOf(account, undefined) === 'admin')
        throw new ApiError('Forbidden', 'Forbidden: only people create tokens of administrators', onlyPeople)
      const seconds = lifetimeOf(body)
      const { token, expiresAt } = await tokens.issue(account, seconds)
      return { token, expiresAt: expiresAt ? timestamp(expiresAt) : null }
    },
  }
}

/** Null: the token does not expire. */
function lifetimeOf({ duration, noExpiration = false }: api.TokenRequest): number | null {
  if (noExpiration && duration !== undefined) {
    const causes = [
      invalidField('duration', 'A token with noExpiration has no duration'),
      invalidField('noExpiration', 'A token with a duration expires'),
    ]
    throw invalid(kind, causes, 'Use either duration or noExpiration')
  }
  if (noExpiration) return null
  if (duration === undefined) return serviceAccountTokenSeconds
  const seconds = parseDuration(duration)
  if (seconds !== undefined && seconds >= 60 && seconds <= maxSeconds) return seconds
  const message = `Invalid duration "${duration}": use 1m to ${maxSeconds / 86_400}d`
  throw invalid(kind, [invalidField('duration', message)], 'Use for example 8760h0m0s or 30d, or set noExpiration')
}

const badName = (name: string): ApiError =>
  invalid(
    kind,
    [invalidField('serviceaccount', `Invalid service account name "${name.slice(0, 100)}"`)],
    'Use lowercase letters, digits, dashes and periods, start and end with a letter or digit; at most 253 characters',
  )
