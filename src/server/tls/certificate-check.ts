// Checks whether a certificate and a private key can serve HTTPS, and extracts what is public. No message repeats
// anything of a key. Which certificate is served is decided in certificates.ts.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import tls from 'node:tls'
import { type Cause, invalid, invalidField } from '../../api/errors.ts'
import type { Certificate, CertificateUpload } from '../../api/service/certificates.ts'
import { timestamp } from '../../platform/clock.ts'

/** PEM texts in normalized form. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

type Field = keyof CertificateUpload

class Fault extends Error {
  readonly field: Field

  constructor(field: Field, message: string) {
    super(message)
    this.field = field
  }
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g
const keyBlock = /-----BEGIN (?<type>(?:[A-Z0-9]+ )*)PRIVATE KEY-----[^-]+-----END \k<type>PRIVATE KEY-----/g
const maxChain = 10

export function factsOf(pem: string): Certificate {
  const leaf = new X509Certificate(pem)
  return {
    subject: oneLine(leaf.subject),
    issuer: oneLine(leaf.issuer),
    notBefore: timestamp(leaf.validFromDate),
    notAfter: timestamp(leaf.validToDate),
    dnsNames: [...(leaf.subjectAltName ?? '').matchAll(/(?:^|, )DNS:([^,"\s]+)/g)].map((match) => match[1] ?? ''),
    fingerprint: leaf.fingerprint256,
    publicKeyFingerprint: fingerprintOf(leaf.publicKey),
    // checkIssued would require the certificate to be allowed to sign others.
    selfSigned: leaf.subject === leaf.issuer && leaf.verify(leaf.publicKey),
  }
}

/** The command line pins this fingerprint, which does not change when a certificate is renewed with its key. */
export const fingerprintOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .toUpperCase()
    .replace(/..(?=.)/g, '$&:')

/** Node writes one attribute per line. */
const oneLine = (name: string | undefined): string => (name ?? '').split('\n').join(', ')

/** Throws Invalid, naming every faulty part. */
export function checkPair({ certPath, keyPath }: CertificateUpload, now: Date): Pair {
  const causes: Cause[] = []
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      causes.push(invalidField(error.field, `${error.field}: ${error.message}`))
      return undefined
    }
  }
  const key = attempt(() => readKey(keyPath))
  const chain = attempt(() => readChain(certPath, now))
  const pair = key && chain && attempt(() => match(chain, key))
  if (pair) return pair
  throw invalid('certificates', causes, 'Send the files as the CA issued them: certPath=@tls.crt keyPath=@tls.key')
}

function readKey(text: string): KeyObject {
  const blocks = text.match(keyBlock) ?? []
  const [block] = blocks
  if (/ENCRYPTED/.test(text))
    throw new Fault('keyPath', 'The private key has a passphrase: remove it first (openssl pkey -in tls.key)')
  if (blocks.length === 0 && /BEGIN CERTIFICATE/.test(text))
    throw new Fault('keyPath', 'This is a certificate, not a private key: certPath and keyPath seem swapped')
  if (block === undefined || blocks.length > 1)
    throw new Fault('keyPath', `Expected one private key in PEM, found ${blocks.length}`)
  const key = parseKey(block)
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  const kind = key.asymmetricKeyType ?? ''
  if (kind === 'rsa' && modulusLength < 2048)
    throw new Fault('keyPath', `The RSA key has ${modulusLength} bits: use at least 2048`)
  if (kind === 'ec' && !curves.has(namedCurve))
    throw new Fault('keyPath', `Curve ${namedCurve} is not supported: use P-256, P-384 or P-521`)
  if (kind !== 'rsa' && kind !== 'ec') throw new Fault('keyPath', `Key type ${kind} is not supported: use RSA or ECDSA`)
  return key
}

const curves = new Set(['prime256v1', 'secp384r1', 'secp521r1'])

function parseKey(block: string): KeyObject {
  try {
    return createPrivateKey(block)
  } catch {
    // The cause is omitted, because a parser's message may quote what it read.
    throw new Fault('keyPath', 'Cannot read the private key: it is damaged or not PEM')
  }
}

function readChain(text: string, now: Date): readonly X509Certificate[] {
  const blocks = text.match(certificateBlock) ?? []
  if (/PRIVATE KEY/.test(text))
    throw new Fault('certPath', 'This contains a private key: send only certificates here, and the key as keyPath')
  if (blocks.length === 0 || blocks.length > maxChain)
    throw new Fault('certPath', `Expected 1 to ${maxChain} certificates in PEM, found ${blocks.length}`)
  const chain = blocks.map(parseCertificate)
  for (const [index, { validFromDate, validToDate }] of chain.entries()) {
    if (now > validToDate) throw new Fault('certPath', `${nth(index)} expired at ${timestamp(validToDate)}`)
    if (now < validFromDate)
      throw new Fault('certPath', `${nth(index)} is not valid before ${timestamp(validFromDate)}`)
  }
  return chain
}

const nth = (index: number): string => (index === 0 ? 'The certificate' : `Certificate ${index + 1} of the chain`)

function parseCertificate(block: string, index: number): X509Certificate {
  try {
    return new X509Certificate(block)
  } catch {
    throw new Fault('certPath', `${nth(index)} cannot be read: it is damaged`)
  }
}

function match(chain: readonly X509Certificate[], key: KeyObject): Pair {
  const [leaf] = chain
  if (!leaf?.checkPrivateKey(key)) {
    const isLater = chain.some((each) => each.checkPrivateKey(key))
    if (isLater)
      throw new Fault('certPath', 'The server certificate must come first, before the certificates that signed it')
    throw new Fault('keyPath', 'The private key does not match the certificate')
  }
  for (const [index, each] of chain.entries()) {
    const signer = chain[index + 1]
    if (signer && !(each.checkIssued(signer) && each.verify(signer.publicKey)))
      throw new Fault(
        'certPath',
        `${nth(index)} is not signed by the next one: order the chain from the server to the root`,
      )
  }
  checkUse(leaf)
  checkSignatures(chain)
  const certificate = chain.map((each) => each.toString()).join('')
  const pair = { certificate, key: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
  try {
    tls.createSecureContext({ cert: pair.certificate, key: pair.key })
  } catch (error) {
    throw new Fault('certPath', `Unusable for TLS (${(error as NodeJS.ErrnoException).code ?? 'no reason given'})`)
  }
  return pair
}

const serverAuth = '1.3.6.1.5.5.7.3.1'

/** Refuses a certificate that all clients would refuse. */
function checkUse({ keyUsage, subjectAltName = '' }: X509Certificate): void {
  // In Node, `keyUsage` is the extended key usage. Without one, a certificate may be used for everything.
  if (keyUsage !== undefined && !keyUsage.includes(serverAuth))
    throw new Fault(
      'certPath',
      'The certificate is not for servers: its extended key usage lacks serverAuth (TLS Web Server Authentication)',
    )
  if (!/(?:^|, )(?:DNS|IP Address):/.test(subjectAltName))
    throw new Fault(
      'certPath',
      'The certificate has no subject alternative name: add the DNS names or IP addresses of the service',
    )
}

function checkSignatures(chain: readonly X509Certificate[]): void {
  for (const [index, { signatureAlgorithm = '', subject, issuer }] of chain.entries()) {
    // Clients ignore the signature of a root.
    const isRoot = index > 0 && subject === issuer
    const weak = isRoot ? undefined : /sha-?1(?!\d)|md5/i.exec(signatureAlgorithm)
    if (weak)
      throw new Fault(
        'certPath',
        `${nth(index)} is signed by ${signatureAlgorithm}, which is insecure: use SHA-256 or better`,
      )
  }
}
