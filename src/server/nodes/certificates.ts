// X.509 certificates of the authority and of nodes. Imported lazily, because loading takes 100 ms.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  randomBytes,
  sign,
  type webcrypto,
} from 'node:crypto'
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
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
const authorityText = 'svc3 nodes'
const authorityName = [{ CN: [authorityText] }]

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

/** What stands in the certificates of all nodes alike, by the authority that signs them. */
interface Signer {
  readonly authority: Pair
  readonly key: KeyObject
  readonly keyIdentifier: Buffer
}

let known: Signer | undefined
function signerOf(authority: Pair): Signer {
  if (known?.authority.key === authority.key) return known
  const key = createPrivateKey(authority.key)
  // Of the key itself, without the algorithm before it: the last 32 bytes (RFC 5280, 4.2.1.2).
  const keyIdentifier = hash('sha1', spki(createPublicKey(authority.key)).subarray(-32), 'buffer')
  known = { authority, key, keyIdentifier }
  return known
}

/** For both sides of a connection. PEM. Written out here: all nodes may want one at once, and the library takes 50 times as long. */
export function signNode(authority: Pair, node: CertifiedNode, { notBefore, notAfter }: Validity): string {
  const { key, keyIdentifier } = signerOf(authority)
  const serial = randomBytes(16)
  // Positive, and as short as it can be.
  serial[0] = 0x40 | ((serial[0] as number) & 0x3f)
  const toBeSigned = sequence(
    der(0xa0, der(0x02, [2])),
    der(0x02, serial),
    ed25519,
    nameOf(authorityText),
    sequence(timeOf(notBefore), timeOf(notAfter)),
    nameOf(node.name),
    spki(createPublicKey({ key: Buffer.from(node.publicKey, 'base64'), format: 'der', type: 'spki' })),
    der(
      0xa3,
      sequence(
        extension(19, sequence(), true),
        extension(15, der(0x03, [7, 0x80]), true),
        extension(37, sequence(oid(43, 6, 1, 5, 5, 7, 3, 1), oid(43, 6, 1, 5, 5, 7, 3, 2))),
        extension(17, sequence(der(0x86, Buffer.from(nodeUri(node.uid))))),
        extension(35, sequence(der(0x80, keyIdentifier))),
      ),
    ),
  )
  const signature = sign(null, toBeSigned, key)
  const bytes = sequence(toBeSigned, ed25519, der(0x03, [0], signature))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----`
}

/** DER: a tag, the length, what is in it. */
function der(tag: number, ...parts: (Uint8Array | readonly number[])[]): Buffer {
  const inside = Buffer.concat(parts.map((part) => Buffer.from(part)))
  const { length } = inside
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...head]), inside])
}
const sequence = (...parts: Uint8Array[]): Buffer => der(0x30, ...parts)
const oid = (...parts: number[]): Buffer => der(0x06, parts)
const ed25519 = sequence(oid(43, 101, 112))
/** CN alone. Names of nodes are printable strings, as that of the authority is, which has to be the same byte for byte. */
const nameOf = (text: string): Buffer => sequence(der(0x31, sequence(oid(85, 4, 3), der(0x13, Buffer.from(text)))))
/** UTCTime until 2049, as RFC 5280 wants it. */
const timeOf = (at: Date): Buffer => {
  const digits = at.toISOString().replace(/\D/g, '').slice(0, 14)
  return at.getUTCFullYear() < 2050
    ? der(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : der(0x18, Buffer.from(`${digits}Z`))
}
/** Of X.509 itself: 2.5.29 and a number. */
const extension = (number: number, value: Buffer, isCritical = false): Buffer =>
  sequence(oid(85, 29, number), ...(isCritical ? [der(0x01, [0xff])] : []), der(0x04, value))

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })
const signingKey = (key: KeyObject): webcrypto.CryptoKey => key.toCryptoKey(signingAlgorithm, false, ['sign'])
