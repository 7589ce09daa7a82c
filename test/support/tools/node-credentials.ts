// A node authority without a cluster, and nodes with its certificates, valid or with a chosen flaw.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { SubjectAlternativeNameExtension, X509Certificate, X509CertificateGenerator } from '@peculiar/x509'
import type { NodeCredentials } from '../../../src/agent/link/peer-tls.ts'
import { makeNodeAuthority, signNode } from '../../../src/server/nodes/certificates.ts'

const hourMs = 3_600_000

export const validFor = (fromHours: number, toHours: number) => ({
  notBefore: new Date(Date.now() + fromHours * hourMs),
  notAfter: new Date(Date.now() + toHours * hourMs),
})

export async function startAuthority() {
  const pair = await makeNodeAuthority(validFor(-1, 24))
  return {
    ...pair,
    async credentials(uid: string, validity = validFor(-1, 1)): Promise<NodeCredentials> {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
      return {
        certificate: await signNode(pair, { name: `node-of-${uid}`, uid, publicKey: spki }, validity),
        authority: pair.certificate,
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      }
    },
  }
}

/** What a node could forge with its own key and certificate to pose as another one. */
export async function forge(by: NodeCredentials, uid: string): Promise<NodeCredentials> {
  const [key, signingAlgorithm] = [createPrivateKey(by.key), { name: 'Ed25519' }]
  const forged = await X509CertificateGenerator.create({
    ...validFor(-1, 1),
    subject: [{ CN: ['another'] }],
    issuer: new X509Certificate(by.certificate).subjectName,
    publicKey: createPublicKey(by.key).export({ type: 'spki', format: 'der' }),
    signingKey: key.toCryptoKey(signingAlgorithm, false, ['sign']),
    signingAlgorithm,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'url', value: `svc3://node/${uid}` }])],
  })
  return { ...by, certificate: `${forged.toString('pem')}\n${by.certificate}` }
}
