// Certificates for tests: self-signed, of an authority, or with a chosen flaw; and the form that uploads them.
import { createHash, X509Certificate } from 'node:crypto'
import { type GenerateResult, generate } from 'selfsigned'

export interface TestPair {
  readonly cert: string
  readonly key: string
}

interface Wanted {
  readonly name?: string
  /** Besides 127.0.0.1. */
  readonly address?: string
  readonly issuer?: TestPair
  readonly isAuthority?: boolean
  readonly notBefore?: Date
  readonly notAfter?: Date
  readonly keyType?: 'rsa' | 'ec'
  readonly passphrase?: string
  readonly algorithm?: 'sha1' | 'sha256'
  /** The extended key usage; absent for none. */
  readonly use?: 'serverAuth' | 'clientAuth'
  /** Without a host in its subject alternative names. */
  readonly isNameless?: boolean
  /** Instead of a new key. */
  readonly keyPair?: { readonly privateKey: string; readonly publicKey: string }
}

const dayMs = 86_400_000

/** For `name`, localhost and 127.0.0.1; valid for a year around both the tests' clock and this machine's. */
export async function makePair(wanted: Wanted = {}): Promise<TestPair> {
  const { name = 'localhost', issuer, isAuthority = false, keyType = 'ec', passphrase } = wanted
  const made: GenerateResult = await generate([{ name: 'commonName', value: name }], {
    keyType,
    algorithm: wanted.algorithm ?? 'sha256',
    notBeforeDate: wanted.notBefore ?? new Date(Math.min(Date.now(), Date.parse('2026-11-15')) - dayMs),
    notAfterDate: wanted.notAfter ?? new Date(Math.max(Date.now(), Date.parse('2026-11-15')) + 365 * dayMs),
    ...(issuer && { ca: issuer }),
    ...(passphrase && { passphrase }),
    ...(wanted.keyPair && { keyPair: wanted.keyPair }),
    extensions: [
      { name: 'basicConstraints', cA: isAuthority, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: isAuthority, critical: true },
      ...(wanted.use ? [{ name: 'extKeyUsage' as const, [wanted.use]: true }] : []),
      { name: 'subjectAltName', altNames: wanted.isNameless ? [{ type: 1, value: 'a@example.com' }] : hosts(wanted) },
    ],
  })
  return { cert: made.cert, key: made.private }
}

const hosts = ({ name = 'localhost', address }: Wanted): { type: 2 | 7; value?: string; ip?: string }[] => [
  { type: 2, value: name },
  { type: 2, value: 'localhost' },
  { type: 7, ip: '127.0.0.1' },
  ...(address === undefined ? [] : [{ type: 7 as const, ip: address }]),
]

/** SHA-256 of a certificate's public key, as openssl prints it. */
export const keyFingerprintOf = (cert: string): string => {
  const key = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  return (createHash('sha256').update(key).digest('hex').toUpperCase().match(/../g) ?? []).join(':')
}

export const uploadPath = '/api/v1/upload/cert'

interface Form {
  readonly body: string
  readonly headers: { readonly 'content-type': string }
}

/** Parts as files, as curl -F name=@file sends them. Undefined ones are omitted. */
export const fileForm = (parts: Readonly<Record<string, string | undefined>>): Promise<Form> =>
  encode(parts, (text) => new File([text], 'x.pem'))

/** Parts as plain fields. */
export const textForm = (parts: Readonly<Record<string, string | undefined>>): Promise<Form> =>
  encode(parts, (text) => text)

async function encode(
  parts: Readonly<Record<string, string | undefined>>,
  part: (text: string) => string | File,
): Promise<Form> {
  const form = new FormData()
  for (const [name, text] of Object.entries(parts)) if (text !== undefined) form.append(name, part(text) as string)
  const encoded = new Response(form)
  return { body: await encoded.text(), headers: { 'content-type': encoded.headers.get('content-type') ?? '' } }
}

export const formOf = ({ cert, key }: TestPair): Promise<Form> => fileForm({ certPath: cert, keyPath: key })
