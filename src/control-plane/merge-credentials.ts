// Versions before alpha.32 kept credentials for each address of a registry. Now a registry has one set, under one key.
import { SealError } from '../auth/seal.ts'
import { credentialFor } from '../rules/image-reference.ts'
import { credentialKey, registryIn } from '../server/remotes/registries.ts'
import { PreconditionFailed } from '../store/store.ts'
import type { Server } from './assemble.ts'

/**
 * Keeps the credentials that were used where a registry has several sets, and removes the others. After a crash, the
 * next start continues. Credentials that cannot be decrypted stay where they are; `resealAll` has logged them.
 */
export async function mergeCredentials({
  collections,
  secrets,
  log,
}: Pick<Server, 'collections' | 'secrets' | 'log'>): Promise<void> {
  const { registryCredentials: all, namespaces } = collections
  const registries = Map.groupBy(all.list(), ({ key }) => credentialKey(all, all.scopeOf(key), registryIn(key)))
  for (const [key, entries] of registries) {
    const namespace = all.scopeOf(key)
    const name = registryIn(key)
    const used = credentialFor(
      { registry: name },
      entries.map(({ value }) => value),
    )
    const winner = entries.find((each) => each.key === key) ?? entries.find(({ value }) => value === used) ?? entries[0]
    const space = namespaces.get('', namespace)
    if (!winner || !space || space.value.isTerminating || entries.every((each) => each.key === key)) continue
    try {
      const { sealed: _, ...fields } = winner.value
      const secret = secrets.open(winner.key, winner.value)
      if (winner.key !== key)
        await secrets.sealing((protect) => all.change(key, () => protect(key, fields, secret), [space]))
      for (const { key: other, value } of entries) {
        if (other === key) continue
        secrets.open(other, value)
        await all.change(other, () => null)
        const problem = `kept those of ${fields.server}, removed those of ${value.server}`
        if (value.server !== fields.server)
          log.warn('a registry had several sets of credentials', { namespace, name, problem })
      }
    } catch (error) {
      // The namespace may just have been marked for deletion on another server.
      if (!(error instanceof SealError || error instanceof PreconditionFailed)) throw error
    }
  }
}
