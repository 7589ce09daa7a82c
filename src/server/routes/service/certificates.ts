// The certificate of the API: a new one, and what is public about the present one.
import type * as api from '../../../api/service/certificates.ts'
import { displayName } from '../../../auth/principal.ts'
import type { HandlersOf } from '../../handlers.ts'
import type { Services } from '../../services.ts'
import { checkPair } from '../../tls/certificate-check.ts'

export function certificates({ certificates }: Services): HandlersOf<typeof api> {
  return {
    uploadCertificate: ({ body, principal, now }) => certificates.replace(checkPair(body, now), displayName(principal)),
    getCertificate: async () => (await certificates.current()).facts,
  }
}
