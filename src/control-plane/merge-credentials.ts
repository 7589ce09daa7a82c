// Versions before alpha.32 kept credentials for each address of a registry. Now a registry has one set, under one key.
import { ApiError } from '../api/errors.ts'
import { SealError } from '../auth/seal.ts'
import type { Secrets } from '../auth/secrets.ts'
import type { Log } from '../platform/log.ts'
import { credentialFor } from '../rules/image-reference.ts'
import { writeInside } from '../server/gate/namespace.ts'
import { credentialKey, registryIn } from '../server/remotes/registries.ts'
import type { Collections, RegistryCredentialRecord } from '../store/records/collections.ts'
import type { Entry } from '../store/store.ts'

interface MergeServices {
  readonly collections: Collections
  readonly secrets: Secrets
  readonly log: Log
}

/**
 * Keeps the credentials that were used where a registry has several sets, and removes the others. After a crash, the
 * next start continues. Credentials that cannot be decrypted stay where they are; `resealAll` has logged them.
 */
export async function mergeCredentials(services: MergeServices): Promise<void> {
  const stored = services.collections.registryCredentials
  const registries = Map.groupBy(stored.list(), ({ key }) =>
    credentialKey(stored, stored.scopeOf(key), registryIn(key)),
  )
  for (const [key, entries] of registries) {
    if (entries.every((each) => each.key === key)) continue
    try {
      await merge(services, key, entries)
    } catch (error) {
      // A namespace that is being deleted refuses the write, and its records are deleted with it.
      if (!(error instanceof SealError || error instanceof ApiError)) throw error
    }
  }
}

async function merge(
  { collections, secrets, log }: MergeServices,
  key: string,
  entries: readonly Entry<RegistryCredentialRecord>[],
): Promise<void> {
  const { registryCredentials: stored } = collections
  // After a crash, two records have the same address, and the one with the right key may be newer.
  const values = entries.toSorted((one, other) => Number(other.key === key) - Number(one.key === key))
  const used = credentialFor(
    { registry: registryIn(key) },
    values.map(({ value }) => value),
  )
  const winner = values.find(({ value }) => value === used) ?? values[0]
  if (!winner) return
  const { sealed: _, ...fields } = winner.value
  const secret = secrets.open(winner.key, winner.value)
  const namespace = stored.scopeOf(key)
  if (winner.key !== key)
    await secrets.sealing((protect) =>
      writeInside({ collections }, namespace, (space) =>
        stored.change(key, () => protect(key, fields, secret), [space]),
      ),
    )
  for (const { key: other, value } of entries) {
    if (other !== key) await stored.change(other, () => null)
    if (value.server !== fields.server)
      log.warn('a registry had several sets of credentials', {
        namespace,
        name: registryIn(key),
        problem: `kept those of ${fields.server}, removed those of ${value.server}`,
      })
  }
}
