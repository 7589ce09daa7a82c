// The X.509 certificate of the authority for nodes, made once in years: theirs are in leaf-certificate.ts. Imported lazily,
// because loading takes 100 ms.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, type webcrypto } from 'node:crypto'
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Pair } from '../tls/certificate-check.ts'

export interface Validity {
  readonly notBefore: Date
  readonly notAfter: Date
}

export interface CertifiedNode {
  readonly name: string
  readonly uid: string
  /** Ed25519, as SPKI in base64. */
  readonly publicKey: string
}

const signingAlgorithm = { name: 'Ed25519' }
const authorityName = [{ CN: ['svc3 nodes'] }]

/** With the key that is given, what an earlier certificate of it vouched for stays good. */
export async function makeNodeAuthority(validity: Validity, key = newKey()): Promise<Pair> {
  const [privateKey, publicKey] = [createPrivateKey(key), createPublicKey(key)]
  const made = await X509CertificateGenerator.create({
    ...validity,
    subject: authorityName,
    issuer: authorityName,
    publicKey: spki(publicKey),
    signingKey: signingKey(privateKey),
    signingAlgorithm,
    extensions: [
      // It signs nodes, and nobody who could sign any further.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(spki(publicKey)),
    ],
  })
  return { certificate: made.toString('pem'), key }
}

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })
const signingKey = (key: KeyObject): webcrypto.CryptoKey => key.toCryptoKey(signingAlgorithm, false, ['sign'])
