// Handlers of the API's certificate: replace it, and show its public part.
import type * as api from '../../../api/service/certificates.ts'
import { displayName } from '../../../auth/principal.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { checkPair } from '../../tls/certificate-check.ts'
import type { Certificates } from '../../tls/certificates.ts'

export function certificates({ certificates }: { readonly certificates: Certificates }): HandlersOf<typeof api> {
  return {
    uploadCertificate: ({ body, principal, now }) => certificates.replace(checkPair(body, now), displayName(principal)),
    getCertificate: async () => (await certificates.current()).facts,
  }
}
