// The certificate of the API on the wire. The private key goes in and never comes out.
import * as t from 'typebox'
import { base, operation } from '../operation.ts'
import { Timestamp } from '../records.ts'

export const Certificate = t.Object(
  {
    subject: t.String({ description: 'Whom it names, for example `CN=svc3.example.com`' }),
    issuer: t.String({ description: 'Who signed it' }),
    notBefore: Timestamp,
    notAfter: Timestamp,
    dnsNames: t.Array(t.String(), { description: 'Host names that it is good for' }),
    fingerprint: t.String({ description: 'SHA-256 of the certificate, as pairs of digits with colons between them' }),
    publicKeyFingerprint: t.String({
      description:
        'SHA-256 of its public key (SPKI), in the same form. `svc3` pins this one: it stays when the service renews its own certificate',
    }),
    selfSigned: t.Boolean({ description: 'No authority vouches for it: clients pin its public key' }),
  },
  { title: 'Certificate', description: 'What is public about the certificate that HTTPS is served with' },
)
export type Certificate = t.Static<typeof Certificate>

const maxPemBytes = 65_536

export const CertificateUpload = t.Object(
  {
    certPath: t.String({
      minLength: 1,
      maxLength: maxPemBytes,
      format: 'binary',
      description: 'PEM: the certificate of the server, then those that lead from it to an authority',
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

const noun = 'certificates'
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
  noun,
  method: 'POST',
  path: `${base}/upload/cert`,
  allow: 'admin',
  status: 200,
  summary: 'Serve HTTPS with a certificate of your own',
  description:
    'New connections get it at once, on every server; open ones go on. For example `curl -F certPath=@tls.crt -F keyPath=@tls.key`.',
  involves: 'answer.fingerprint',
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
  noun,
  method: 'GET',
  path: `${base}/certificate`,
  allow: 'user',
  status: 200,
  summary: 'Show the certificate that HTTPS is served with',
  response: Certificate,
  refuses: [],
  example: { response: example },
})
