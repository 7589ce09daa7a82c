// After a change of the master key: everything sealed goes under the active key, then the old keys are dropped.
import { type Keyring, onlyActive } from '../auth/keyring.ts'
import type { ResealReport, Secrets } from '../auth/secrets.ts'
import type { Collections } from '../store/collections.ts'

export interface Rotation extends ResealReport {
  readonly keyId: string
}

/** `keepRing` writes the ring back; without it (keys from a variable or a credential) the operator drops old keys. */
export async function resealAll(
  collections: Collections,
  secrets: Secrets,
  keepRing?: (ring: Keyring) => Promise<void>,
): Promise<Rotation> {
  const reports = [await secrets.reseal(collections.registryCredentials), await secrets.reseal(collections.signingKeys)]
  const resealed = reports.reduce((sum, report) => sum + report.resealed, 0)
  const refused = reports.flatMap((report) => report.refused)
  // An old key stays as long as a record might need it.
  if (keepRing && refused.length === 0 && secrets.ring.keys.size > 1) {
    const ring = onlyActive(secrets.ring)
    await keepRing(ring)
    secrets.use(ring)
  }
  return { keyId: secrets.ring.active.id, resealed, refused }
}
