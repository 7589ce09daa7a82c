// The storage of the built-in provider. Codes, refresh tokens and session cookies are the ids of its records. Ids are hashed
// and the rest is sealed, so that the data folder has nothing that could be used to log in. `controllers/expire-records.ts`
// deletes expired records.
import { type Adapter, type AdapterPayload, errors } from 'oidc-provider'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Collection } from '../../store/collection.ts'
import type { LoginRecord } from '../../store/records/collections.ts'
import { type Entry, ignoreLost, isFault } from '../../store/store.ts'
import { SealError } from '../seal.ts'
import type { Secrets } from '../secrets.ts'
import type { IssuerKeys } from './issuer-keys.ts'

export interface LoginStorage {
  readonly logins: Collection<LoginRecord>
  readonly secrets: Secrets
  readonly keys: Pick<IssuerKeys, 'hide'>
  readonly clock: Clock
  /** The limit for concurrent logins in progress. */
  readonly maxPending?: number
}

/** Sessions are also found by uid, and device codes by the code that the user types. */
const otherIds = { Session: 'uid', DeviceCode: 'userCode' } as const

/** Records of finished logins. All others belong to logins in progress, which can be begun without authentication. */
const lasting: ReadonlySet<string> = new Set(['RefreshToken', 'Grant', 'Session'])
const maxPending = 10_000

/** Refuses new logins while too many are in progress, so that unauthenticated requests cannot fill the store. */
function checkRoom(model: string, logins: Collection<LoginRecord>, max: number): void {
  if (lasting.has(model) || logins.list().length < max) return
  if (logins.list().filter(({ value }) => !lasting.has(value.model)).length < max) return
  throw Object.assign(new errors.TemporarilyUnavailable('Too many logins in progress. Try again in a few minutes.'), {
    status: 429,
    statusCode: 429,
  })
}

const usedAlready = (): Error => new errors.InvalidGrant('already used')

export function createLoginAdapter(model: string, storage: LoginStorage): Adapter {
  const { logins, secrets, keys, clock } = storage
  const nameOf = (id: string): string => keys.hide(model, id)
  const entryOf = (id: string): Entry<LoginRecord> | undefined => logins.get(model, nameOf(id))

  const open = (entry: Entry<LoginRecord> | undefined): AdapterPayload | undefined => {
    if (!entry || Date.parse(entry.value.expiresAt) <= clock.now().getTime()) return undefined
    try {
      return JSON.parse(secrets.open(entry.key, entry.value)) as AdapterPayload
    } catch (error) {
      // An altered record counts as missing.
      if (error instanceof SealError) return undefined
      throw error
    }
  }

  const write = <T>(
    name: string,
    payload: AdapterPayload,
    expiresAt: string,
    put: (seal: () => LoginRecord) => Promise<T>,
  ): Promise<T> => {
    const other = payload[otherIds[model as keyof typeof otherIds]]
    const fields = {
      model,
      expiresAt,
      ...(payload.grantId && { grant: keys.hide('grant', payload.grantId) }),
      ...(typeof other === 'string' && { other: keys.hide('other', other) }),
    }
    return secrets.sealing((protect) => put(() => protect(logins.key(model, name), fields, JSON.stringify(payload))))
  }

  const findOther = (id: string): AdapterPayload | undefined => {
    const other = keys.hide('other', id)
    return open(logins.list(model).find((entry) => entry.value.other === other))
  }

  const remove = async (entry: Entry<LoginRecord>): Promise<void> => {
    await logins.delete(entry).catch(ignoreLost)
  }

  return {
    async upsert(id, payload, expiresIn) {
      const name = nameOf(id)
      const expiresAt = timestamp(new Date(clock.now().getTime() + (expiresIn ?? 3_600) * 1_000))
      await write(name, payload, expiresAt, (seal) =>
        logins.change(logins.key(model, name), (before) => {
          if (!before) checkRoom(model, logins, storage.maxPending ?? maxPending)
          return seal()
        }),
      )
    },
    find: async (id) => open(entryOf(id)),
    findByUid: async (uid) => findOther(uid),
    findByUserCode: async (userCode) => findOther(userCode),
    async consume(id) {
      const entry = entryOf(id)
      const payload = open(entry)
      if (!entry || !payload || payload.consumed) throw usedAlready()
      const consumed = { ...payload, consumed: Math.floor(clock.now().getTime() / 1_000) }
      // Of concurrent requests with the same code, only one wins the compare-and-set.
      await write(nameOf(id), consumed, entry.value.expiresAt, (seal) => logins.update(entry, seal())).catch(
        (error: unknown) => {
          throw isFault(error, 'Conflict') || isFault(error, 'NotFound') ? usedAlready() : error
        },
      )
    },
    async destroy(id) {
      const entry = entryOf(id)
      if (entry) await remove(entry)
    },
    async revokeByGrantId(grantId) {
      const grant = keys.hide('grant', grantId)
      await Promise.all(
        logins
          .list(model)
          .filter((entry) => entry.value.grant === grant)
          .map(remove),
      )
    },
  }
}
