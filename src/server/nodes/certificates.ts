// X.509 certificates of the node authority and of nodes. Imported lazily, because loading takes 100 ms.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, type webcrypto } from 'node:crypto'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { nodeUri } from '../../rules/names.ts'
import type { Pair } from '../tls/certificate-check.ts'

interface Validity {
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

/** An authority renewed with the same key still verifies the certificates that its predecessor signed. */
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
      // Path length 0: it signs nodes, not further authorities.
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(spki(publicKey)),
    ],
  })
  return { certificate: made.toString('pem'), key }
}

/** Returns a certificate as PEM, which the node uses as TLS server and as TLS client. */
export async function signNode(authority: Pair, node: CertifiedNode, validity: Validity): Promise<string> {
  const made = await X509CertificateGenerator.create({
    ...validity,
    subject: [{ CN: [node.name] }],
    issuer: authorityName,
    publicKey: Buffer.from(node.publicKey, 'base64'),
    signingKey: signingKey(createPrivateKey(authority.key)),
    signingAlgorithm,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension([{ type: 'url', value: nodeUri(node.uid) }]),
      await AuthorityKeyIdentifierExtension.create(spki(createPublicKey(authority.key))),
    ],
  })
  return made.toString('pem')
}

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })
const signingKey = (key: KeyObject): webcrypto.CryptoKey => key.toCryptoKey(signingAlgorithm, false, ['sign'])
