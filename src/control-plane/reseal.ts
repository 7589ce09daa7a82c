// Completes a rotation of the master key: seals everything with the active key, then drops the old keys.
import { type Keyring, loadKeyring, onlyActive, saveKeyring, withNewKey } from '../auth/keyring.ts'
import type { ResealReport, Secrets } from '../auth/secrets.ts'
import { type Collections, sealedOf } from '../store/records/collections.ts'

export interface Rotation extends ResealReport {
  readonly keyId: string
}

/**
 * Adds a new key before anything is sealed with it, so that after an interruption the keys on disk open everything, and
 * the next start continues.
 */
export async function rotateKeyFile(collections: Collections, secrets: Secrets, file: string): Promise<Rotation> {
  const ring = withNewKey(await loadKeyring({ source: { kind: 'file', file } }, false))
  await saveKeyring(file, ring)
  await secrets.use(ring)
  return resealAll(collections, secrets, (left) => saveKeyring(file, left))
}

/**
 * `keepRing` saves the remaining keys. Without it, keys come from a variable or a credential, and the operator drops
 * old ones.
 */
export async function resealAll(
  collections: Collections,
  secrets: Secrets,
  keepRing?: (ring: Keyring) => Promise<void>,
): Promise<Rotation> {
  const reports: ResealReport[] = []
  for (const collection of sealedOf(collections)) reports.push(await secrets.reseal(collection))
  const resealed = reports.reduce((sum, report) => sum + report.resealed, 0)
  const refused = reports.flatMap((report) => report.refused)
  // A record that could not be opened may still need an old key.
  if (keepRing && refused.length === 0 && secrets.ring.keys.size > 1) {
    const ring = onlyActive(secrets.ring)
    await keepRing(ring)
    await secrets.use(ring)
  }
  return { keyId: secrets.ring.active.id, resealed, refused }
}

export const notOurs = (name: string): string =>
  `The master keys come from ${name}, which only you can change. Put a new key before the old one there and restart ` +
  'the server, which encrypts everything again. Then remove the old key'
