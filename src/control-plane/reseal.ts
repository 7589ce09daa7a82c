// After a rotation of the master key: reseals everything under the active key, then drops the old keys.
import { type Keyring, loadKeyring, onlyActive, saveKeyring, withNewKey } from '../auth/keyring.ts'
import type { ResealReport, Secrets } from '../auth/secrets.ts'
import { type Collections, sealedOf } from '../store/records/collections.ts'

export interface Rotation extends ResealReport {
  readonly keyId: string
}

/**
 * A new key, added to the old ones before anything is sealed with it: interrupted at any point, what is on disk opens
 * everything, and the next start goes on.
 */
export async function rotateKeyFile(collections: Collections, secrets: Secrets, file: string): Promise<Rotation> {
  const ring = withNewKey(await loadKeyring({ source: { kind: 'file', file } }, false))
  await saveKeyring(file, ring)
  await secrets.use(ring)
  return resealAll(collections, secrets, (left) => saveKeyring(file, left))
}

/** `keepRing` writes the ring back; without it (keys from a variable or a credential) the operator drops old keys. */
export async function resealAll(
  collections: Collections,
  secrets: Secrets,
  keepRing?: (ring: Keyring) => Promise<void>,
): Promise<Rotation> {
  const reports: ResealReport[] = []
  for (const collection of sealedOf(collections)) reports.push(await secrets.reseal(collection))
  const resealed = reports.reduce((sum, report) => sum + report.resealed, 0)
  const refused = reports.flatMap((report) => report.refused)
  // An old key stays as long as a record might need it.
  if (keepRing && refused.length === 0 && secrets.ring.keys.size > 1) {
    const ring = onlyActive(secrets.ring)
    await keepRing(ring)
    await secrets.use(ring)
  }
  return { keyId: secrets.ring.active.id, resealed, refused }
}

/** Keys that come from a variable or a credential are the operator's to change. */
export const notOurs = (name: string): string =>
  `The master keys come from ${name}, which only you can change. Put a new key before the old one there and restart ` +
  'the server, which encrypts everything again. Then remove the old key'
