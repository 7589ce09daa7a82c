// The certificate of a node, written as DER by hand: it is always of the same form, and thousands of nodes that come back at once
// need one each. A library that can write any certificate takes fifty times as long as the signature in it.
import { createPrivateKey, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { nodeUri } from '../../rules/names.ts'
import type { Pair } from '../tls/certificate-check.ts'
import type { CertifiedNode, Validity } from './certificates.ts'

const tags = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  object: 0x06,
  printable: 0x13,
  utcTime: 0x17,
  laterTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
  extensions: 0xa3,
  /** Of alternative names. */
  uri: 0x86,
  /** Of the authority's. */
  keyId: 0x80,
} as const

/** One value: tag, length, content. */
function der(tag: keyof typeof tags, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Uint8Array.of(tags[tag], ...size), content])
}

const text = (tag: 'printable' | 'utcTime' | 'laterTime' | 'uri', value: string): Buffer =>
  der(tag, Buffer.from(value, 'latin1'))
const object = (hex: string): Buffer => der('object', Buffer.from(hex, 'hex'))
const isTrue = der('boolean', Uint8Array.of(0xff))

const ed25519 = der('sequence', object('2b6570'))
const commonName = object('550403')
const named = (name: string): Buffer =>
  der('sequence', der('set', der('sequence', commonName, text('printable', name))))
const issuer = named('svc3 nodes')
const version3 = der('version', der('integer', Uint8Array.of(2)))

const subjectKeyId = object('551d0e')
const extension = (id: string, isCritical: boolean, value: Buffer): Buffer =>
  der('sequence', object(id), ...(isCritical ? [isTrue] : []), der('octets', value))
const forNobodyElse = extension('551d13', true, der('sequence'))
const forSignatures = extension('551d0f', true, der('bits', Uint8Array.of(7, 0x80)))
/** Servers and clients. */
const forBothSides = extension('551d25', false, der('sequence', object('2b06010505070301'), object('2b06010505070302')))

/** As certificates write it: with two digits for the year until 2049. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, '')
  return date.getUTCFullYear() < 2050 ? text('utcTime', digits.slice(2)) : text('laterTime', digits)
}

interface Signer {
  readonly key: KeyObject
  /** That the authority's own certificate has for its key. */
  readonly keyId: Buffer
}
const signers = new WeakMap<Pair, Signer>()

function signerOf(authority: Pair): Signer {
  const known = signers.get(authority)
  if (known) return known
  const { raw } = new X509Certificate(authority.certificate)
  const at = raw.indexOf(subjectKeyId)
  // Two octet strings, one in the other.
  const keyId = raw.subarray(at + subjectKeyId.length + 4, at + subjectKeyId.length + 24)
  if (at < 0 || keyId.length !== 20) throw new Error('the authority for nodes has no identifier of its key')
  const signer = { key: createPrivateKey(authority.key), keyId }
  signers.set(authority, signer)
  return signer
}

/** Never negative, and never with a zero in front. */
function serial(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40
  return bytes
}

/** For both sides of a connection. PEM. */
export function signNode(authority: Pair, node: CertifiedNode, { notBefore, notAfter }: Validity): string {
  const { key, keyId } = signerOf(authority)
  const extensions = [
    forNobodyElse,
    forSignatures,
    forBothSides,
    extension('551d11', false, der('sequence', text('uri', nodeUri(node.uid)))),
    extension('551d23', false, der('sequence', der('keyId', keyId))),
  ]
  const content = der(
    'sequence',
    version3,
    der('integer', serial()),
    ed25519,
    issuer,
    der('sequence', time(notBefore), time(notAfter)),
    named(node.name),
    Buffer.from(node.publicKey, 'base64'),
    der('extensions', der('sequence', ...extensions)),
  )
  const signature = der('bits', Uint8Array.of(0), sign(null, content, key))
  const lines = der('sequence', content, ed25519, signature)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
