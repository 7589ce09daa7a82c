// Handlers of service accounts: an account is a record with a uid; its tokens are signed over the uid and not stored.
import { randomUUID } from 'node:crypto'
import type * as api from '../../../api/access/service-accounts.ts'
import type { ServiceAccount } from '../../../api/access/service-accounts.ts'
import { ApiError, invalid, notFound, success } from '../../../api/errors.ts'
import { serviceAccountTokenSeconds, type Tokens } from '../../../auth/tokens.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseDuration } from '../../../rules/durations.ts'
import { isServiceAccountName } from '../../../rules/names.ts'
import type { Collections, ServiceAccountRecord } from '../../../store/records/collections.ts'
import { type Entry, isFault } from '../../../store/store.ts'
import { createInside } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'serviceaccounts'
const longestSeconds = 100 * serviceAccountTokenSeconds

interface ServiceAccountServices {
  readonly collections: Collections
  readonly tokens: Tokens
}

export function serviceAccounts(services: ServiceAccountServices): HandlersOf<typeof api> {
  const { collections, tokens } = services
  const accounts = collections.serviceAccounts
  const shown = ({ value, rev }: Entry<ServiceAccountRecord>): ServiceAccount => {
    const { name, namespace, uid, createdAt } = value
    return { name, namespace, uid, createdAt, resourceVersion: rev }
  }
  const existing = (namespace: string, name: string): Entry<ServiceAccountRecord> => {
    const entry = accounts.get(namespace, name)
    if (!entry) throw notFound(kind, name, `svc3 serviceaccount list -n ${namespace} shows what is there`)
    return entry
  }

  return {
    listServiceAccounts: ({ params }) => listing(accounts, params.namespace, shown),

    async createServiceAccount({ params: { namespace, serviceaccount: name }, now, requestKey }) {
      if (!isServiceAccountName(name)) throw badName(name)
      const record: ServiceAccountRecord = {
        name,
        namespace,
        uid: randomUUID(),
        createdAt: timestamp(now),
        ...(requestKey !== undefined && { requestKey }),
      }
      try {
        return shown(await createInside(services, namespace, accounts, name, record))
      } catch (error) {
        const found = accounts.get(namespace, name)
        if (!isFault(error, 'AlreadyExists') || !found) throw error
        if (requestKey !== undefined && found.value.requestKey === requestKey) return shown(found)
        throw exists(name, namespace)
      }
    },

    async deleteServiceAccount({ params: { namespace, serviceaccount: name } }) {
      await accounts.change(accounts.key(namespace, name), () => {
        existing(namespace, name)
        return null
      })
      return success(`service account "${name}" deleted from namespace "${namespace}"`, { kind, name })
    },

    async createServiceAccountToken({ params: { namespace, serviceaccount: name }, body }) {
      const { uid } = existing(namespace, name).value
      const seconds = body.noExpiration ? null : checkedSeconds(body.duration)
      const { token, expiresAt } = await tokens.issue({ kind: 'serviceaccount', name, namespace, uid }, seconds)
      return { token, expiresAt: expiresAt ? timestamp(expiresAt) : null }
    },
  }
}

function checkedSeconds(duration: string | undefined): number {
  if (duration === undefined) return serviceAccountTokenSeconds
  const seconds = parseDuration(duration)
  if (seconds !== undefined && seconds >= 60 && seconds <= longestSeconds) return seconds
  const message = `the duration "${duration}" is not from 1m to ${longestSeconds / 86_400}d`
  throw invalid(
    kind,
    [{ field: 'duration', reason: 'FieldValueInvalid', message }],
    'write for example 8760h0m0s or 30d, or set noExpiration',
  )
}

const badName = (name: string): ApiError =>
  invalid(
    kind,
    [
      {
        field: 'serviceaccount',
        reason: 'FieldValueInvalid',
        message: `"${name.slice(0, 100)}" is not a name for a service account`,
      },
    ],
    'use lowercase letters, digits, dashes and periods, at most 253, beginning and ending with a letter or digit',
  )

const exists = (name: string, namespace: string): ApiError =>
  new ApiError('AlreadyExists', `service account "${name}" exists already in namespace "${namespace}"`, {
    kind,
    name,
    hint: 'use it, or delete it first: that ends its tokens',
  })
