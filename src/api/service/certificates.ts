// The HTTPS certificate of the API. The private key can be uploaded and is never returned.
import * as t from 'typebox'
import { base, operationsOf } from '../operation.ts'
import { Timestamp } from '../records.ts'

export const Certificate = t.Object(
  {
    subject: t.String({ description: 'Subject, for example `CN=svc3.example.com`' }),
    issuer: t.String({ description: 'Issuer' }),
    notBefore: Timestamp,
    notAfter: Timestamp,
    dnsNames: t.Array(t.String(), { description: 'Host names in the certificate' }),
    fingerprint: t.String({ description: 'SHA-256 of the certificate, as hex pairs with colons' }),
    publicKeyFingerprint: t.String({
      description:
        'SHA-256 of its public key (SPKI), in the same form. `svc3` pins this one; it stays the same when a self-signed certificate is renewed',
    }),
    selfSigned: t.Boolean({ description: 'The certificate is self-signed; clients pin its public key' }),
  },
  { title: 'Certificate', description: 'The HTTPS certificate of the API' },
)
export type Certificate = t.Static<typeof Certificate>

const maxPemBytes = 65_536

export const CertificateUpload = t.Object(
  {
    certPath: t.String({
      minLength: 1,
      maxLength: maxPemBytes,
      format: 'binary',
      description: 'PEM: the server certificate, then the chain to the CA',
    }),
    keyPath: t.String({
      minLength: 1,
      maxLength: maxPemBytes,
      format: 'binary',
      writeOnly: true,
      description: 'PEM: its private key, RSA (2048 bits or more) or ECDSA (P-256, P-384, P-521), without a passphrase',
    }),
  },
  { title: 'CertificateUpload' },
)
export type CertificateUpload = t.Static<typeof CertificateUpload>

const operation = operationsOf({ noun: 'certificates' })
const example = {
  subject: 'CN=svc3.example.com',
  issuer: 'CN=Example CA',
  notBefore: '2026-11-15T09:00:00Z',
  notAfter: '2027-11-15T09:00:00Z',
  dnsNames: ['svc3.example.com'],
  fingerprint: Array.from({ length: 32 }, () => '5F').join(':'),
  publicKeyFingerprint: Array.from({ length: 32 }, () => 'A0').join(':'),
  selfSigned: false,
}

export const uploadCertificate = operation({
  id: 'uploadCertificate',
  method: 'POST',
  path: `${base}/upload/cert`,
  allow: 'admin',
  summary: 'Upload a certificate for HTTPS',
  description:
    'New connections use it immediately, on every server; open ones continue. For example `curl -F certPath=@tls.crt -F keyPath=@tls.key`.',
  involves: 'answer.fingerprint',
  past: 'uploaded certificate {name}',
  consumes: 'multipart/form-data',
  body: CertificateUpload,
  response: Certificate,
  refuses: ['RequestEntityTooLarge', 'Invalid'],
  example: {
    body: {
      certPath: '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n',
      keyPath: '-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----\n',
    },
    response: example,
  },
})

export const getCertificate = operation({
  id: 'getCertificate',
  method: 'GET',
  path: `${base}/certificate`,
  allow: 'user',
  summary: 'Show the HTTPS certificate',
  response: Certificate,
  example: { response: example },
})
