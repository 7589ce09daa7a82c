// What a server looks after now and then: the certificate, the signing keys, who calls paths of 2.4.x.
import type { SigningKeys } from '../auth/signing-keys.ts'
import type { Log } from '../platform/log.ts'
import { type Loop, startLoop } from '../platform/loop.ts'
import type { LegacyUsage } from '../server/legacy/usage.ts'
import type { Certificates } from '../server/tls/certificates.ts'

const renewalCheckMs = 6 * 3_600_000
const keyCheckMs = 3_600_000
/** A kill loses what was counted since. */
const usageEveryMs = 15_000

export function renewCertificate(certificates: Certificates, log: Log): Loop {
  const failed = (error: unknown): void => log.error('the certificate could not be renewed', {}, error)
  return startLoop({ everyMs: renewalCheckMs, run: () => certificates.renew(), failed })
}

export function tendSigningKeys(signingKeys: Pick<SigningKeys, 'tend'>, log: Log): Loop {
  const failed = (error: unknown): void => log.error('signing keys could not be looked after', {}, error)
  return startLoop({ everyMs: keyCheckMs, run: () => signingKeys.tend(), failed })
}

export const usageNotKept =
  (log: Log) =>
  (error: unknown): void =>
    log.error('who calls paths of 2.4.x could not be written down', {}, error)

export function keepLegacyUsage(usage: LegacyUsage, log: Log): Loop {
  return startLoop({ everyMs: usageEveryMs, isFirstLater: true, run: () => usage.flush(), failed: usageNotKept(log) })
}
