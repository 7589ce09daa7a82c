// The certificate of a node, beside what a library writes for the same.
import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { describe, it } from 'node:test'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { nodeUri } from '../../rules/names.ts'
import { makeNodeAuthority } from './certificates.ts'
import { signNode } from './leaf-certificate.ts'

const keys = generateKeyPairSync('ed25519')
const node = {
  name: 'mini-arm-13.example.com',
  uid: '1c1d4a4e-7f2a-4a0f-8d63-0c3d0b7f9a10',
  publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
}
const validity = (year: number) => ({
  notBefore: new Date(`${year}-01-02T03:04:05Z`),
  notAfter: new Date('2061-06-07'),
})
const authority = await makeNodeAuthority(validity(2026))

/** What it says after its number, and before its signature. */
const contentOf = (certificate: string): string => {
  const { raw, serialNumber } = new X509Certificate(certificate)
  const serial = Buffer.from(serialNumber, 'hex')
  return raw.subarray(raw.indexOf(serial) + serial.length, -64).toString('hex')
}

describe('the certificate of a node', () => {
  for (const year of [2026, 2049, 2050])
    it(`a certificate from ${year} on is the one that a library writes, byte for byte`, async () => {
      const library = await X509CertificateGenerator.create({
        ...validity(year),
        subject: [{ CN: [node.name] }],
        issuer: [{ CN: ['svc3 nodes'] }],
        publicKey: Buffer.from(node.publicKey, 'base64'),
        signingKey: createPrivateKey(authority.key).toCryptoKey({ name: 'Ed25519' }, false, ['sign']),
        signingAlgorithm: { name: 'Ed25519' },
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
          new SubjectAlternativeNameExtension([{ type: 'url', value: nodeUri(node.uid) }]),
          await AuthorityKeyIdentifierExtension.create(
            createPublicKey(authority.key).export({ type: 'spki', format: 'der' }),
          ),
        ],
      })
      assert.equal(contentOf(signNode(authority, node, validity(year))), contentOf(library.toString('pem')))
    })

  it('a certificate is signed by its authority, and by no other one', async () => {
    const root = new X509Certificate(authority.certificate)
    const other = new X509Certificate((await makeNodeAuthority(validity(2026))).certificate)
    const serials = new Set<string>()
    for (let count = 0; count < 200; count++) {
      const leaf = new X509Certificate(signNode(authority, node, validity(2026)))
      assert.ok(leaf.checkIssued(root) && leaf.verify(root.publicKey) && !leaf.verify(other.publicKey))
      assert.ok(!leaf.checkIssued(other))
      serials.add(leaf.serialNumber)
    }
    assert.equal(serials.size, 200)
  })
})
